//! Overflows the stack: a list that is too deep for a recursive function.

use std::hint::black_box;

struct Category {
    name: String,
    parent: usize,
}

/// The path from the root to a category; the root was entered as its own grandchild.
fn path(categories: &[Category], index: usize) -> String {
    if index == usize::MAX {
        return String::new();
    }
    let scratch = black_box([0u8; 256]);
    let above = path(categories, categories[index].parent);
    let _ = black_box(&scratch);
    format!("{above}/{}", categories[index].name)
}

fn category(name: &str, parent: usize) -> Category {
    Category { name: name.to_owned(), parent }
}

fn main() {
    let mut categories = vec![category("all", usize::MAX), category("books", 0), category("poetry", 1)];
    println!("{}", path(&categories, 2));
    categories[0].parent = 2;
    println!("{}", path(&categories, 2));
}
