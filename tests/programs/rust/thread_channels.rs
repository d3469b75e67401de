//! Counts words in several threads: scoped ones with a mutex, others with a channel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

const VERSES: [&str; 4] =
    ["row row row your boat", "gently down the stream", "merrily merrily merrily merrily", "life is but a dream"];

fn shared_count() -> BTreeMap<&'static str, u32> {
    let counts = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for verse in VERSES {
            let counts = &counts;
            scope.spawn(move || {
                for word in verse.split_whitespace() {
                    *counts.lock().unwrap().entry(word).or_insert(0) += 1;
                }
            });
        }
    });
    counts.into_inner().unwrap()
}

fn main() {
    let counts = shared_count();
    let mut often: Vec<_> = counts.iter().filter(|(_, n)| **n > 1).collect();
    often.sort_by_key(|(word, n)| (std::cmp::Reverse(**n), **word));
    println!("{often:?}");

    let (sender, receiver) = mpsc::channel();
    let sent = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..4)
        .map(|i| {
            let (sender, sent) = (sender.clone(), Arc::clone(&sent));
            thread::spawn(move || {
                sender.send((i, VERSES[i].len())).unwrap();
                sent.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    drop(sender);
    let mut lengths: Vec<_> = receiver.iter().collect();
    lengths.sort();
    workers.into_iter().for_each(|w| w.join().unwrap());
    println!("{lengths:?} from {} threads", sent.load(Ordering::SeqCst));

    let result = thread::spawn(|| "not a number".parse::<i32>()).join().unwrap();
    println!("{}", result.unwrap_err());
}
