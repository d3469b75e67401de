//! Messages with file descriptors over Unix sockets, and the loopback interface.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{check, owned};

/// The kernel's own limit for one message (SCM_MAX_FD).
pub(crate) const MAX_FDS: usize = 253;
const CONTROL: usize = 1100;

/// A pair of connected sockets that keep message boundaries; both close-on-exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0i32; 2];
    // SAFETY: the kernel writes two ints into the array of two.
    check(unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr()).into()
    })?;
    // SAFETY: both fds were just made and are known to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Sends one message with at most [`MAX_FDS`] fds. Never raises SIGPIPE.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if fds.len() > MAX_FDS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = Control([0; CONTROL]);
    let mut iov = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    // SAFETY: an all-zero msghdr is valid; every pointer put into it outlives the call, and the control
    // buffer is aligned and larger than CMSG_SPACE of MAX_FDS ints.
    unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = &mut iov;
        msg.msg_iovlen = 1;
        if !fds.is_empty() {
            let len = size_of_val(fds) as u32;
            msg.msg_control = control.0.as_mut_ptr().cast();
            msg.msg_controllen = libc::CMSG_SPACE(len) as usize;
            let cmsg = libc::CMSG_FIRSTHDR(&msg);
            (*cmsg).cmsg_level = libc::SOL_SOCKET;
            (*cmsg).cmsg_type = libc::SCM_RIGHTS;
            (*cmsg).cmsg_len = libc::CMSG_LEN(len) as usize;
            let data = libc::CMSG_DATA(cmsg).cast::<i32>();
            for (i, fd) in fds.iter().enumerate() {
                data.add(i).write_unaligned(fd.as_raw_fd());
            }
        }
        check(libc::sendmsg(socket.as_raw_fd(), &msg, libc::MSG_NOSIGNAL) as libc::c_long)?;
    }
    Ok(())
}

/// Receives one message. `None` is the end: the other side is gone. A message cut short is an error.
pub(crate) fn receive(socket: BorrowedFd<'_>, buf: &mut [u8], wait: bool) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut control = Control([0; CONTROL]);
    let mut iov = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let mut fds = Vec::new();
    let flags = libc::MSG_CMSG_CLOEXEC | if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: as in `send`; each fd found in the control data was installed for us by this very call.
    let (n, msg_flags) = unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = &mut iov;
        msg.msg_iovlen = 1;
        msg.msg_control = control.0.as_mut_ptr().cast();
        msg.msg_controllen = CONTROL;
        let n = check(libc::recvmsg(socket.as_raw_fd(), &mut msg, flags) as libc::c_long)?;
        let mut cmsg = libc::CMSG_FIRSTHDR(&msg);
        while !cmsg.is_null() {
            if (*cmsg).cmsg_level == libc::SOL_SOCKET && (*cmsg).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(cmsg).cast::<i32>();
                let count = ((*cmsg).cmsg_len - libc::CMSG_LEN(0) as usize) / size_of::<i32>();
                for i in 0..count {
                    fds.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
                }
            }
            cmsg = libc::CMSG_NXTHDR(&msg, cmsg);
        }
        (n as usize, msg.msg_flags)
    };
    if msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    if n == 0 && fds.is_empty() {
        return Ok(None);
    }
    Ok(Some((n, fds)))
}

/// Who is on the other side of a connected Unix socket, as he was when he connected.
pub(crate) struct Peer {
    pub(crate) pid: i32,
    /// User and group.
    pub(crate) owner: (u32, u32),
}

pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the struct of that size.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast(), &raw mut len)
            .into()
    })?;
    Ok(Peer { pid: found.pid, owner: (found.uid, found.gid) })
}

/// Writes to a socket without waiting, whatever the socket's own mode is.
pub(crate) fn send_now(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the buffer is borrowed for the call.
    let n = check(unsafe {
        libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
            as libc::c_long
    })?;
    Ok(n as usize)
}

/// connect with a raw address.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length are of the same live slice.
    check(unsafe {
        libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t).into()
    })?;
    Ok(())
}

/// Brings `lo` up in the network namespace of the caller.
pub(crate) fn loopback_up() -> io::Result<()> {
    // SAFETY: socket takes no pointers.
    let socket = owned(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0).into() })?;
    // SAFETY: an all-zero ifreq is valid; the ioctls read the name and read or write the flags of it.
    unsafe {
        let mut req: libc::ifreq = std::mem::zeroed();
        for (to, from) in req.ifr_name.iter_mut().zip(b"lo") {
            *to = *from as libc::c_char;
        }
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut req).into())?;
        req.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &mut req).into())?;
    }
    Ok(())
}
