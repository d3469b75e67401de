//! What is no policy: refused with a sentence that names the field, and not kept.

use crate::harness::*;

/// A name for the row, the whole file, what the sentence must say.
type Row = (&'static str, Vec<u8>, &'static str);

fn with(lines: &str) -> Vec<u8> {
    policy("bad", lines).into_bytes()
}

fn id(id: &str) -> Vec<u8> {
    format!("policy_id = {id}\nname = \"A test\"\nnetwork_policy = \"none\"\n").into_bytes()
}

fn net(lines: &str) -> Vec<u8> {
    format!("policy_id = \"bad\"\nname = \"A test\"\n{lines}\n").into_bytes()
}

/// Neither `check` nor `define` take it, and nothing is kept.
fn all_are_refused(rows: Vec<Row>) {
    let place = Place::new();
    let mut wrong = vec![];
    let number = rows.len();
    for (row, bytes, part) in rows {
        let file = place.write("bad.toml", bytes);
        for verb in ["check", "define"] {
            for how in ["text", "json"] {
                let ran = place.go(&["policy", verb, file.to_str().expect("UTF-8"), "--output", how]);
                wrong.extend(ran.is_refused(&[part]).err().map(|why| format!("{row}, {verb}: {why}")));
            }
        }
        let kept = place.contents("state/policies");
        if !kept.is_empty() {
            wrong.push(format!("{row}: {kept:?} was kept"));
            let _ = std::fs::remove_dir_all(place.state());
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{} of {number}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(!place.state().exists(), "a refused policy left something");
}

#[test]
fn what_is_malformed() {
    all_are_refused(vec![
        ("nothing", vec![], "policy_id"),
        ("no name", b"policy_id = \"bad\"\nnetwork_policy = \"none\"".to_vec(), "name"),
        ("no network", b"policy_id = \"bad\"\nname = \"A\"".to_vec(), "network_policy"),
        ("no id", b"name = \"A\"\nnetwork_policy = \"none\"".to_vec(), "policy_id"),
        ("unknown field", with("max_memory_gb = 1"), "max_memory_gb"),
        ("unknown field in compile", with("[compile]\nmax_cpu = 1"), "max_cpu"),
        ("field twice", with("cpus = 1\ncpus = 2"), "line 5"),
        ("no TOML", b"{\"policy_id\": \"bad\"}".to_vec(), "line 1"),
        ("NUL", b"policy_id = \"bad\"\nname = \"a\0b\"\nnetwork_policy = \"none\"".to_vec(), "line 2"),
        ("NUL, escaped", b"policy_id = \"bad\"\nname = \"a\\u0000b\"\nnetwork_policy = \"none\"".to_vec(), "name"),
        ("no UTF-8", b"policy_id = \"\xff\"".to_vec(), "UTF-8"),
        ("deep nesting", with(&format!("allowed_hosts = {}{}", "[".repeat(5000), "]".repeat(5000))), "line 4"),
        ("deep tables", with(&format!("compile = {}1{}", "{a = ".repeat(5000), "}".repeat(5000))), "line 4"),
        ("deep keys", with(&format!("a{} = 1", ".a".repeat(5000))), "recursion"),
        ("not closed", with("allowed_hosts = ["), "line 4"),
        ("empty name", b"policy_id = \"bad\"\nname = \"\"\nnetwork_policy = \"none\"".to_vec(), "name"),
        ("long name", policy("bad", "").replace("A test", &"x".repeat(201)).into_bytes(), "name"),
    ]);
}

#[test]
fn what_is_out_of_range() {
    let mut rows: Vec<Row> = vec![];
    for (field, values) in [
        ("max_wall_time_seconds", ["0", "-1", "nan", "inf", "-inf", "1e300", "2592001"]),
        ("request_budget_seconds", ["0", "-1", "nan", "inf", "-inf", "1e300", "2592001"]),
        ("max_cpu_seconds", ["0", "-1", "nan", "inf", "-inf", "1e300", "2592001"]),
        ("cpus", ["0", "-1", "nan", "inf", "-inf", "1e300", "4097"]),
    ] {
        rows.extend(values.map(|value| (field, with(&format!("{field} = {value}")), field)));
    }
    for field in ["max_memory_mb", "max_open_files", "max_file_size_mb", "max_output_mb", "scratch_mb", "max_processes"]
    {
        rows.extend(["0", "9223372036854775807"].map(|value| (field, with(&format!("{field} = {value}")), field)));
    }
    for field in ["max_executions_per_minute", "max_executions_per_hour", "max_concurrent"] {
        rows.extend(["0", "9223372036854775807"].map(|value| (field, with(&format!("{field} = {value}")), field)));
    }
    for (field, values) in [("max_wall_time_seconds", ["0", "nan"]), ("max_memory_mb", ["0", "9223372036854775807"])] {
        rows.extend(values.map(|value| {
            ("compile", with(&format!("[compile]\n{field} = {value}")), ["compile.", field].concat().leak() as &str)
        }));
    }
    assert!(rows.len() >= 30);
    all_are_refused(rows);
}

#[test]
fn what_contradicts_itself() {
    all_are_refused(vec![
        ("full without network", net("network_policy = \"full\""), "allow_network"),
        (
            "restricted without network",
            net("network_policy = \"restricted\"\nallowed_hosts = [\"a:1\"]"),
            "allow_network",
        ),
        ("restricted without hosts", net("network_policy = \"restricted\"\nallow_network = true"), "allowed_hosts"),
        ("none with hosts", with("allowed_hosts = [\"a:1\"]"), "allowed_hosts"),
        (
            "full with hosts",
            net("network_policy = \"full\"\nallow_network = true\nallowed_hosts = [\"a:1\"]"),
            "allowed_hosts",
        ),
        ("capsule without languages", with("python = \"capsule\""), "python"),
        ("capsule with others", with("python = \"capsule\"\nallowed_languages = [\"python\", \"bash\"]"), "python"),
        ("capsule with another", with("python = \"capsule\"\nallowed_languages = [\"bash\"]"), "python"),
        ("strict in a process", with("mode = \"strict\""), "isolation_level"),
        ("strict in a container", with("mode = \"strict\"\nisolation_level = \"container\""), "isolation_level"),
        (
            "hour below minute",
            with("max_executions_per_hour = 5\nmax_executions_per_minute = 6"),
            "max_executions_per_hour",
        ),
        ("unknown backend", with("backend = \"chroot\""), "backend"),
        ("unknown trigger", with("strict_when = { days = [\"friday\"] }"), "days"),
        ("triggers of nothing", with("strict_when = { paths = [\"\"] }"), "strict_when.paths"),
        ("a trigger of two words", with("strict_when = { words = [\"two words\"] }"), "strict_when.words"),
        ("an empty word", with("strict_when = { words = [\"\"] }"), "strict_when.words"),
        ("a trigger that is no text", with("strict_when = { words = [1] }"), "strict_when"),
        ("natively strict", with("backend = \"native\"\nstrict_when = { words = [\"x\"] }"), "strict_when"),
        ("strict by an engine", with("backend = \"docker\"\nstrict_when = { words = [\"x\"] }"), "strict_when"),
        ("unknown layer", with("require = [\"cgroup\", \"luck\"]"), "require"),
    ]);
}

#[test]
fn what_is_no_host() {
    let rows =
        ["", "a", "a:", ":1", "a:0", "a:65536", "a:-1", "a:b", "a b:1", "a/b:1", "a\\n:1", "*:1", "http://a:1", "ä:1"];
    let host = |host: &str| {
        net(&format!(
            "network_policy = \"restricted\"\nallow_network = true\nallowed_hosts = [\"good:443\", \"{host}\"]"
        ))
    };
    all_are_refused(rows.into_iter().map(|row| (row, host(row), "allowed_hosts")).collect());
}

#[test]
fn what_is_no_id() {
    let long = format!("\"{}\"", "x".repeat(65));
    let rows = [
        "\"\"",
        "\"../x\"",
        "\"..\"",
        "\".\"",
        "\"/etc/x\"",
        "\"a/b\"",
        "\"a b\"",
        "\"a.b\"",
        "\"ä\"",
        "\"a\\u0000\"",
        "\"a\\n\"",
        "\".hidden\"",
        &long,
    ];
    all_are_refused(rows.iter().map(|row| ("id", id(row), "policy_id")).collect());
}

#[test]
fn what_is_of_a_wrong_type_is_named() {
    let fields = [
        ("mode", "1"),
        ("mode", "\"sloppy\""),
        ("isolation_level", "\"chroot\""),
        ("isolation_level", "true"),
        ("backend", "7"),
        ("allowed_hosts", "\"a:1\""),
        ("allowed_hosts", "[1]"),
        ("max_cpu_seconds", "\"1\""),
        ("cpus", "true"),
        ("max_memory_mb", "\"64\""),
        ("max_memory_mb", "-1"),
        ("max_memory_mb", "1.5"),
        ("max_wall_time_seconds", "[]"),
        ("request_budget_seconds", "{}"),
        ("max_processes", "-5"),
        ("max_open_files", "nan"),
        ("max_file_size_mb", "\"\""),
        ("max_output_mb", "-9223372036854775808"),
        ("scratch_mb", "1979-05-27"),
        ("allowed_languages", "\"python\""),
        ("allowed_languages", "[[\"python\"]]"),
        ("max_executions_per_minute", "1.0"),
        ("max_executions_per_hour", "-1"),
        ("max_concurrent", "\"two\""),
        ("allow_network", "1"),
        ("allow_file_write", "\"true\""),
        ("require_approval", "0"),
        ("on_violation", "\"ignore\""),
        ("require", "{}"),
        ("compile", "1"),
        ("python", "\"half\""),
        ("max_memory_mb", "99999999999999999999"),
    ];
    let rows = fields.map(|(field, value)| (field, with(&format!("{field} = {value}")), field));
    all_are_refused(rows.into_iter().collect());
}

#[test]
fn what_is_of_a_wrong_type_is_located() {
    let fields = [
        "mode = 1",
        "mode = \"sloppy\"",
        "isolation_level = \"chroot\"",
        "backend = 7",
        "allowed_hosts = \"a:1\"",
        "allowed_hosts = [1]",
        "max_cpu_seconds = \"1\"",
        "cpus = true",
        "max_memory_mb = \"64\"",
        "max_memory_mb = -1",
        "max_memory_mb = 1.5",
        "max_wall_time_seconds = []",
        "max_processes = -5",
        "max_open_files = nan",
        "max_output_mb = -9223372036854775808",
        "scratch_mb = 1979-05-27",
        "allowed_languages = \"python\"",
        "max_executions_per_minute = 1.0",
        "max_concurrent = \"two\"",
        "allow_network = 1",
        "allow_file_write = \"true\"",
        "require_approval = 0",
        "on_violation = \"ignore\"",
        "require = {}",
        "compile = 1",
        "python = \"half\"",
        "max_memory_mb = 99999999999999999999",
    ];
    all_are_refused(fields.into_iter().map(|line| (line, with(line), "line 4")).collect());
}

#[test]
fn what_is_no_file() {
    let place = Place::new();
    for verb in ["check", "define"] {
        place.go(&["policy", verb, "/nonexistent"]).refused(&["/nonexistent"]);
        place.go(&["policy", verb, "/"]).refused(&["`/`"]);
        place.go(&["policy", verb]).refused(&["FILE"]);
    }
    place.go(&["policy", "show"]).refused(&["NAME"]);
    place.go(&["policy", "explode"]).refused(&["explode"]);
    assert!(!place.state().exists());
}

#[test]
fn a_strange_field_is_shown_harmlessly() {
    all_are_refused(vec![
        ("escape", with("\"a\\u001b[31mb\" = 1"), "unknown field"),
        ("escape in a value", with("mode = \"\\u001b[31m\""), "line 4"),
        ("return", with("\"a\\rb\" = 1"), "unknown field"),
    ]);
}
