"""A small library catalogue in an SQLite file."""

import sqlite3

BOOKS = [
    ("Frank Herbert", "Dune", 1965),
    ("Ursula K. Le Guin", "The Dispossessed", 1974),
    ("Ursula K. Le Guin", "The Left Hand of Darkness", 1969),
    ("Stanislaw Lem", "Solaris", 1961),
]


def create(connection):
    connection.executescript(
        """
        CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE book (title TEXT, year INTEGER, author INTEGER REFERENCES author);
        """
    )
    for author, title, year in BOOKS:
        connection.execute("INSERT OR IGNORE INTO author (name) VALUES (?)", (author,))
        connection.execute(
            "INSERT INTO book SELECT ?, ?, id FROM author WHERE name = ?", (title, year, author)
        )


def main():
    connection = sqlite3.connect("library.db")
    with connection:
        create(connection)
    query = """
        SELECT name, COUNT(*), MIN(year) FROM book JOIN author ON author.id = book.author
        GROUP BY name ORDER BY 2 DESC, name
    """
    for name, count, first in connection.execute(query):
        print(f"{name}: {count} since {first}")
    try:
        with connection:
            connection.execute("INSERT INTO author (name) VALUES ('Stanislaw Lem')")
    except sqlite3.IntegrityError as error:
        print("refused:", error)
    connection.close()


main()
