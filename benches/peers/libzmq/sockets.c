/* Sockets of libzmq, for the comparison in crates/flowgauge-bus/benches/bus.rs, which starts this program.
 *
 * cc -O3 -o sockets sockets.c -lzmq -lpthread
 *
 * Arguments: pattern (pair, pub_sub, router), transport (tcp, ipc, inproc), size of a message in octets, and kind of
 * measurement (throughput, latency). Each line of standard input is a number of messages; the answer is the time in
 * nanoseconds until the receiver, on a thread of its own, has received them. For latency, a message goes back and forth.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

static void *sender, *receiver, *back_sender, *back_receiver;
static size_t size;
static long count;
static int is_latency, is_router;
static char *content;

static void check(int result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static void *make(void *context, int type) {
    void *socket = zmq_socket(context, type);
    int nodrop = 1, linger = 0;
    if (type == ZMQ_PUB) check(zmq_setsockopt(socket, ZMQ_XPUB_NODROP, &nodrop, sizeof nodrop), "nodrop");
    if (type == ZMQ_SUB) check(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0), "subscribe");
    check(zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger), "linger");
    return socket;
}

static void join(void *bound, void *connecting, const char *transport, const char *name) {
    char endpoint[256];
    size_t len = sizeof endpoint;
    if (!strcmp(transport, "tcp")) strcpy(endpoint, "tcp://127.0.0.1:*");
    else if (!strcmp(transport, "ipc")) snprintf(endpoint, sizeof endpoint, "ipc:///tmp/flowgauge-libzmq-%d-%s", getpid(), name);
    else snprintf(endpoint, sizeof endpoint, "inproc://%s", name);
    check(zmq_bind(bound, endpoint), "bind");
    check(zmq_getsockopt(bound, ZMQ_LAST_ENDPOINT, endpoint, &len), "endpoint");
    check(zmq_connect(connecting, endpoint), "connect");
}

static void receive(void *socket, zmq_msg_t *id) {
    if (id) check(zmq_msg_recv(id, socket, 0), "recv");
    zmq_msg_t message;
    zmq_msg_init(&message);
    check(zmq_msg_recv(&message, socket, 0), "recv");
    if (zmq_msg_size(&message) != size) exit(2);
    zmq_msg_close(&message);
}

static void *send_all(void *unused) {
    (void)unused;
    for (long number = 0; number < count; number++) {
        check(zmq_send(sender, content, size, 0), "send");
        if (is_latency) receive(back_receiver, NULL);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 1;
    const char *pattern = argv[1], *transport = argv[2];
    size = strtoul(argv[3], NULL, 10);
    is_latency = !strcmp(argv[4], "latency");
    is_router = !strcmp(pattern, "router");
    content = calloc(size, 1);
    void *context = zmq_ctx_new();
    if (!strcmp(pattern, "pub_sub")) {
        sender = make(context, ZMQ_PUB), receiver = make(context, ZMQ_SUB);
        join(sender, receiver, transport, "a");
        if (is_latency) {
            back_sender = make(context, ZMQ_PUB), back_receiver = make(context, ZMQ_SUB);
            join(back_sender, back_receiver, transport, "b");
        }
    } else {
        sender = back_receiver = make(context, is_router ? ZMQ_DEALER : ZMQ_PAIR);
        receiver = back_sender = make(context, is_router ? ZMQ_ROUTER : ZMQ_PAIR);
        join(receiver, sender, transport, "a");
    }
    /* Subscriptions arrive in the meantime. */
    usleep(200000);
    while (scanf("%ld", &count) == 1) {
        struct timespec start, end;
        pthread_t thread;
        zmq_msg_t id;
        zmq_msg_init(&id);
        clock_gettime(CLOCK_MONOTONIC, &start);
        pthread_create(&thread, NULL, send_all, NULL);
        for (long number = 0; number < count; number++) {
            receive(receiver, is_router ? &id : NULL);
            if (is_latency) {
                if (is_router) check(zmq_send(back_sender, zmq_msg_data(&id), zmq_msg_size(&id), ZMQ_SNDMORE), "send");
                check(zmq_send(back_sender, content, size, 0), "send");
            }
        }
        pthread_join(thread, NULL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        zmq_msg_close(&id);
        printf("%lld\n", (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec);
        fflush(stdout);
    }
    return 0;
}
