//! Averages and peaks in the record.

use hotcell_contract::{Happened, RunEvent};
use serde_json::Value;

use crate::harness::*;

fn newest(place: &Place, state: &str) -> Value {
    let all = place.go(&["records", "--limit", "1", "--output", "json", "--state-dir", state]).json();
    all["records"][0].clone()
}

#[test]
fn what_was_held_all_the_time() {
    for place in everybody() {
        let state = place.text("state");
        let code = "b = hold(64)\nfor i in range(2):\n    if os.fork() == 0: time.sleep(3600)\nstay()";
        let mut going = place.start(&["--state-dir", &state], &words(&python(code)));
        let of_three = |event: &RunEvent, from: u64| match &event.happened {
            Happened::Sample(sample) => sample.processes == Some(3) && event.since_start_ms >= from,
            _ => false,
        };
        let first = going.wait_for("sample of three", |event| of_three(event, 0));
        // An average is of what was for most of the time, however long it took to begin.
        let much_later = 6 * first.since_start_ms.max(200);
        going.wait_for("sample much later", |event| of_three(event, much_later));
        going.end().passed();
        let record = newest(&place, &state);
        let number = |name: &str| record[name].as_f64().unwrap_or_else(|| panic!("no `{name}` in {record:#}"));
        assert!((50.0..100.0).contains(&number("memory_average_mb")), "{record:#}");
        assert!(number("memory_peak_mb") >= 64.0, "{record:#}");
        assert!((1.0..=3.0).contains(&number("processes_average")), "{record:#}");
        assert_eq!(number("processes_peak"), 3.0, "{record:#}");
        assert!(number("cpu_cores_average") <= number("cpu_cores_peak"), "{record:#}");
        assert!(number("cpu_cores_peak") <= 2.5, "{record:#}");
    }
}

/// Records need no events, and what was over before the first sample has no average.
#[test]
fn without_events_and_without_samples() {
    for place in everybody() {
        let state = place.text("state");
        place.go(&["exec", "--state-dir", &state, "--", "sleep", "3"]).passed();
        assert!(newest(&place, &state)["memory_average_mb"].is_f64(), "{:#}", newest(&place, &state));
        place.go(&["exec", "--state-dir", &state, "--", "no-such-program"]);
        let record = newest(&place, &state);
        for name in ["memory_average_mb", "cpu_cores_average", "cpu_cores_peak", "processes_average"] {
            assert!(record.get(name).is_some_and(Value::is_null), "{record:#}");
        }
    }
}
