use tiny_roman::{parse, Roman};

fn century(year: u32) -> u32 {
    (year + 99) / 100
}

fn main() {
    for (event, year) in [("printing press", 1440), ("steam engine", 1712), ("web", 1989), ("year one", 1)] {
        println!("{event}: {} ({} century)", Roman(year), Roman(century(year)));
    }
    for text in ["MMXXIV", "XLII", "ABC"] {
        println!("{text} = {:?}", parse(text));
    }
}
