mod graph;

use graph::{Graph, GraphError};

fn main() -> Result<(), GraphError> {
    let mut tasks = Graph::default();
    tasks.depends("bake", &["mix", "heat oven"]);
    tasks.depends("mix", &["buy flour", "buy eggs"]);
    tasks.depends("eat", &["bake"]);

    for (step, task) in tasks.order()?.iter().enumerate() {
        println!("{}. {task}", step + 1);
    }

    tasks.depends("buy eggs", &["eat"]);
    match tasks.order() {
        Err(error) => println!("error: {error}"),
        Ok(_) => unreachable!("there is a cycle"),
    }
    Ok(())
}
