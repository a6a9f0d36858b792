// A nats-server of a test's own, on loopback, with JetStream in a temporary folder. It ends with the test.
#pragma once

#include "tests/os/temporary_folder.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace taiyen::test {

inline std::string nats_server_program() {
    if (const char *given = getenv("TAIYEN_NATS_SERVER")) // another version's
        return given;
    for (const char *path : {"/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"})
        if (access(path, X_OK) == 0)
            return path;
    return "";
}

inline int free_port() {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int one = socket(AF_INET, SOCK_STREAM, 0);
    const bool bound = one >= 0 && bind(one, reinterpret_cast<sockaddr *>(&address), size) == 0 &&
                       getsockname(one, reinterpret_cast<sockaddr *>(&address), &size) == 0;
    if (one >= 0)
        close(one);
    return bound ? ntohs(address.sin_port) : -1;
}

class nats_server {
public:
    static constexpr bool reports_cuts = true; // a thread that waits sees that the connection is cut
    static constexpr const char *why_not = "there is no nats-server (scripts/setup test installs it)";
    static bool is_there() { return !nats_server_program().empty(); }

    nats_server() : folder_() {}
    ~nats_server() { end(SIGTERM); }
    nats_server(const nats_server &) = delete;
    nats_server &operator=(const nats_server &) = delete;

    // Whether it runs. The second start has the first one's port.
    bool start() {
        const std::string program = nats_server_program(), config = folder_.file("config");
        if (program.empty())
            return false;
        FILE *file = fopen(config.c_str(), "w");
        if (!file)
            return false;
        fprintf(file, "listen: \"127.0.0.1:%d\"\njetstream { store_dir: \"%s\" }\n%s", port_,
                folder_.file("store").c_str(), more_config_.c_str());
        fclose(file);
        int log[2];
        if (pipe(log))
            return false;
        child_ = fork();
        if (child_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(log[1], STDERR_FILENO);
            close(log[0]);
            close(log[1]);
            execl(program.c_str(), program.c_str(), "-c", config.c_str(), static_cast<char *>(nullptr));
            _exit(127);
        }
        close(log[1]);
        return child_ > 0 && wait_until_ready(log[0]);
    }
    void end(int signal) {
        if (child_ <= 0)
            return;
        kill(child_, signal);
        go_on(); // if it was stopped
        waitpid(child_, nullptr, 0);
        child_ = -1;
        if (log_)
            fclose(log_);
        log_ = nullptr;
    }
    void stop() const { // nobody hears it until it goes on
        kill(child_, SIGSTOP);
        waitpid(child_, nullptr, WUNTRACED);
    }
    void go_on() const { kill(child_, SIGCONT); }
    // Of the next start.
    void use(int port, const std::string &more_config = "") {
        port_ = port;
        more_config_ = more_config;
    }
    std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
    std::string store() const { return folder_.file("store"); }

private:
    bool wait_until_ready(int descriptor) {
        constexpr const char *listens = "Listening for client connections on 127.0.0.1:";
        char timeline[1024];
        log_ = fdopen(descriptor, "r");
        while (log_ && fgets(timeline, sizeof timeline, log_)) {
            if (const char *at = strstr(timeline, listens))
                port_ = atoi(at + strlen(listens));
            if (strstr(timeline, "Server is ready"))
                return true;
        }
        return false;
    }

    temporary_folder folder_;
    int port_ = -1;
    std::string more_config_;
    pid_t child_ = -1;
    FILE *log_ = nullptr; // kept, so that the server can write to it
};

} // namespace taiyen::test
