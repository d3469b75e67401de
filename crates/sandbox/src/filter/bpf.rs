//! A compiler from rules to classic BPF, the language of seccomp.
//!
//! The program loads the architecture, then the number, then walks a balanced tree of `>=` comparisons to the
//! one rule that applies. Rules without arguments end in a `ret`; the kernel (since 5.11) notices that those
//! allow a number always and skips the program for it altogether. Rules with arguments test 32-bit halves.
//! A foreign architecture (the 32-bit ABI) and the x32 range are told to the supervisor, never allowed.

use crate::sys::seccomp::sock_filter;

#[cfg(target_arch = "x86_64")]
pub(crate) const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(not(target_arch = "x86_64"))]
compile_error!("hotcell knows the system calls of x86_64 only: add a table to filter/syscalls.rs for this one");

/// Numbers from here on are the x32 ABI.
const X32_BIT: u32 = 0x4000_0000;

const LD_ABS: u16 = 0x20;
const JEQ: u16 = 0x15;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const JA: u16 = 0x05;
const RET: u16 = 0x06;

const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    /// Refused, with no record.
    Errno(u16),
    /// The supervisor is told, and answers.
    Notify,
}

/// A question about one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// Any of these bits of the low half.
    AnyBit(u32),
    /// The low half, exactly. The kernel looks at no more of an `int`.
    Equal(u32),
    /// Any bit of all 64.
    NotNull,
}

/// The first test that holds decides, else `otherwise`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) tests: Vec<(u8, Test, Action)>,
    pub(crate) otherwise: Action,
}

impl Rule {
    pub(crate) fn plain(action: Action) -> Self {
        Rule { tests: Vec::new(), otherwise: action }
    }
}

fn insn(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn ret(action: Action) -> sock_filter {
    let k = match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Errno(e) => libc::SECCOMP_RET_ERRNO | u32::from(e),
        Action::Notify => libc::SECCOMP_RET_USER_NOTIF,
    };
    insn(RET, k, 0, 0)
}

/// The whole program. A number without a rule gets ENOSYS, as from a kernel that does not have it yet.
pub(crate) fn compile(rules: &[Option<Rule>]) -> Vec<sock_filter> {
    let unknown = Rule::plain(Action::Errno(libc::ENOSYS as u16));
    let mut ranges: Vec<(u32, &Rule)> = vec![];
    for (nr, rule) in (0..).zip(rules.iter().map(|rule| rule.as_ref().unwrap_or(&unknown)).chain([&unknown])) {
        if ranges.last().is_none_or(|(_, last)| *last != rule) {
            ranges.push((nr, rule));
        }
    }
    let mut program = vec![
        insn(LD_ABS, OFFSET_ARCH, 0, 0),
        insn(JEQ, AUDIT_ARCH, 1, 0),
        ret(Action::Notify),
        insn(LD_ABS, OFFSET_NR, 0, 0),
        insn(JGE, X32_BIT, 0, 1),
        ret(Action::Notify),
    ];
    program.extend(tree(&ranges));
    program
}

fn tree(ranges: &[(u32, &Rule)]) -> Vec<sock_filter> {
    if let [(_, rule)] = ranges {
        return leaf(rule);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (first, low, high) = (high[0].0, tree(low), tree(high));
    // A conditional jump reaches 255 instructions, JA any number. Every one costs time when the kernel compiles it.
    let jump = match u8::try_from(low.len()) {
        Ok(near) => vec![insn(JGE, first, near, 0)],
        Err(_) => vec![insn(JGE, first, 0, 1), insn(JA, low.len() as u32, 0, 0)],
    };
    [jump, low, high].concat()
}

fn leaf(rule: &Rule) -> Vec<sock_filter> {
    let mut code = vec![];
    for (arg, test, action) in &rule.tests {
        let low = OFFSET_ARGS + 8 * u32::from(*arg);
        code.push(insn(LD_ABS, low, 0, 0));
        match test {
            Test::AnyBit(mask) => code.push(insn(JSET, *mask, 0, 1)),
            Test::Equal(value) => code.push(insn(JEQ, *value, 0, 1)),
            Test::NotNull => {
                code.extend([insn(JSET, u32::MAX, 2, 0), insn(LD_ABS, low + 4, 0, 0), insn(JSET, u32::MAX, 0, 1)])
            }
        }
        code.push(ret(*action));
    }
    code.push(ret(rule.otherwise));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would, on one call.
    fn run(program: &[sock_filter], arch: u32, nr: u32, args: [u64; 6]) -> u32 {
        let mut data = [0u8; 64];
        data[0..4].copy_from_slice(&nr.to_ne_bytes());
        data[4..8].copy_from_slice(&arch.to_ne_bytes());
        for (i, arg) in args.iter().enumerate() {
            data[16 + 8 * i..24 + 8 * i].copy_from_slice(&arg.to_ne_bytes());
        }
        let (mut pc, mut acc) = (0usize, 0u32);
        loop {
            let i = &program[pc];
            pc += 1;
            let take = match i.code {
                LD_ABS => {
                    let at = i.k as usize;
                    acc = u32::from_ne_bytes(data[at..at + 4].try_into().expect("four bytes"));
                    continue;
                }
                JA => {
                    pc += i.k as usize;
                    continue;
                }
                RET => return i.k,
                JEQ => acc == i.k,
                JGE => acc >= i.k,
                JSET => acc & i.k != 0,
                other => panic!("unknown instruction {other}"),
            };
            pc += usize::from(if take { i.jt } else { i.jf });
        }
    }

    #[test]
    fn every_number_gets_its_rule_and_the_rest_enosys() {
        let needs = super::super::Needs { network: crate::Network::None, count_clones: false, handover_fd: 1024 };
        let rules = super::super::rules(needs);
        let program = compile(&rules);
        assert!(program.len() < 4096, "the kernel takes 4096 instructions, this has {}", program.len());
        for nr in 0..1000 {
            let got = run(&program, AUDIT_ARCH, nr, [0; 6]);
            let want = match rules.get(nr as usize).and_then(Option::as_ref) {
                None => ret(Action::Errno(libc::ENOSYS as u16)).k,
                Some(rule) => {
                    let hit = rule.tests.iter().find(|(_, t, _)| *t == Test::Equal(0));
                    ret(hit.map_or(rule.otherwise, |h| h.2)).k
                }
            };
            assert_eq!(got, want, "system call {nr}");
        }
    }

    #[test]
    fn foreign_abis_are_told() {
        let program = compile(&[None, Some(Rule::plain(Action::Allow))]);
        assert_eq!(run(&program, AUDIT_ARCH, 1, [0; 6]), libc::SECCOMP_RET_ALLOW);
        assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(run(&program, AUDIT_ARCH, X32_BIT | 1, [0; 6]), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(run(&program, AUDIT_ARCH, u32::MAX, [0; 6]), libc::SECCOMP_RET_USER_NOTIF);
    }

    #[test]
    fn arguments_are_compared_as_the_kernel_reads_them() {
        let rule = Rule {
            tests: vec![
                (1, Test::Equal(0x5412), Action::Notify),
                (2, Test::AnyBit(0x3), Action::Errno(1)),
                (3, Test::NotNull, Action::Errno(2)),
            ],
            otherwise: Action::Allow,
        };
        let mut rules = vec![const { None }; 17];
        rules[16] = Some(rule);
        let program = compile(&rules);
        let go = |args| run(&program, AUDIT_ARCH, 16, args);
        assert_eq!(go([0; 6]), libc::SECCOMP_RET_ALLOW);
        // The upper half of an ioctl number is ignored by the kernel, and so by us (CVE-2019-10063).
        assert_eq!(go([0, 0xdead_0000_5412, 0, 0, 0, 0]), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(go([0, 0, 2, 0, 0, 0]), libc::SECCOMP_RET_ERRNO | 1);
        assert_eq!(go([0, 0, 0, 1 << 40, 0, 0]), libc::SECCOMP_RET_ERRNO | 2);
        assert_eq!(go([0, 0, 0, 1, 0, 0]), libc::SECCOMP_RET_ERRNO | 2);
    }
}
