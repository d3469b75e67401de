/* Sockets of every family, and every call that goes outside. */
#include "hostile.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Any family by its number: `sockets FAMILY TYPE PROTOCOL ...`. */
static int sockets(int argc, char **argv) {
    for (int i = 1; i + 2 < argc; i += 3)
        tell(argv[i], socket(atoi(argv[i]), atoi(argv[i + 1]), atoi(argv[i + 2])));
    return 0;
}

static struct sockaddr_in somewhere(int family, const char *ip, int port) {
    struct sockaddr_in to = {.sin_family = (sa_family_t)family, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, ip, &to.sin_addr);
    return to;
}

static void send_all_ways(const char *ip, int port) {
    struct sockaddr_in to = somewhere(AF_INET, ip, port);
    struct iovec text = {.iov_base = "x", .iov_len = 1};
    struct msghdr one = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &text, .msg_iovlen = 1};
    struct mmsghdr many[] = {{.msg_hdr = one}, {.msg_hdr = one}};
    int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
    tell("sendto", sendto(udp, "x", 1, 0, (void *)&to, sizeof to));
    tell("sendmsg", sendmsg(udp, &one, 0));
    tell("sendmmsg", sendmmsg(udp, many, 2, 0));
    tell("fastopen", sendto(tcp, "x", 1, MSG_FASTOPEN, (void *)&to, sizeof to));
    tell("connect", connect(tcp, (void *)&to, sizeof to));
}

static int send_out(int argc, char **argv) {
    (void)argc;
    send_all_ways(argv[1], atoi(argv[2]));
    return 0;
}

/* To sendto, no family at all is AF_INET. */
static int send_unspec(int argc, char **argv) {
    (void)argc;
    struct sockaddr_in to = somewhere(AF_UNSPEC, argv[1], atoi(argv[2]));
    tell("sendto", sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&to, sizeof to));
    return 0;
}

/* Only the second message of a batch goes outside. */
static int second_message(int argc, char **argv) {
    (void)argc;
    struct sockaddr_in to = somewhere(AF_INET, argv[1], atoi(argv[2]));
    struct sockaddr_in inside = somewhere(AF_INET, "127.0.0.1", 9);
    struct iovec text = {.iov_base = "x", .iov_len = 1};
    struct mmsghdr many[] = {
        {.msg_hdr = {.msg_name = &inside, .msg_namelen = sizeof inside, .msg_iov = &text, .msg_iovlen = 1}},
        {.msg_hdr = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &text, .msg_iovlen = 1}}};
    printf("sent %d\n", sendmmsg(socket(AF_INET, SOCK_DGRAM, 0), many, 2, 0));
    return 0;
}

const struct attack network_attacks[] = {
    {"sockets", sockets},         {"send-out", send_out}, {"send-unspec", send_unspec}, {"second-message", second_message},
    {NULL, NULL}};
