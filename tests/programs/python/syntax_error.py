"""A grade book whose author forgot a colon."""


def average(grades):
    return sum(grades) / len(grades)


def letter(score):
    if score >= 90:
        return "A"
    elif score >= 80
        return "B"
    else:
        return "C"


def main():
    grades = [92, 78, 85]
    print("this line is never reached")
    print(letter(average(grades)))


main()
