// Brokers of a test's own, on loopback, with their logs in a temporary folder: processes that are controllers, too.
// They end with the test. TAIYEN_KAFKA: the folder with the jars of Kafka (make test-kafka).
#pragma once

#include "tests/os/temporary_folder.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace taiyen::test {

class kafka_server {
public:
    static constexpr bool reports_cuts = false; // what is under way is sent again
    static constexpr const char *why_not = "there is no Kafka (make test-kafka)";
    static bool is_there() {
#if TAIYEN_WITH_KAFKA
        return getenv("TAIYEN_KAFKA") != nullptr;
#else
        return false;
#endif
    }

    explicit kafka_server(size_t brokers = 1) : brokers_(brokers) {}
    ~kafka_server() {
        end(SIGKILL);
    }
    kafka_server(const kafka_server &) = delete;
    kafka_server &operator=(const kafka_server &) = delete;

    // Whether they run; what uses them waits until they are ready. The second start has the first one's ports and
    // files.
    bool start() {
        if (brokers_[0].port == 0)
            if (!choose_ports() || !format())
                return false;
        for (size_t n = 0; n < brokers_.size(); n++)
            if (brokers_[n].child <= 0 && !start_one(n))
                return false;
        return true;
    }
    bool start_one(size_t n) {
        brokers_[n].child = java("kafka.Kafka", {settings_of(n)});
        return brokers_[n].child > 0;
    }
    void send(size_t n, int signal) const {
        kill(brokers_[n].child, signal);
    }
    void end(int signal) {
        for (size_t n = 0; n < brokers_.size(); n++)
            end_one(n, signal);
    }
    void end_one(size_t n, int signal) {
        if (brokers_[n].child <= 0)
            return;
        kill(brokers_[n].child, signal);
        waitpid(brokers_[n].child, nullptr, 0);
        brokers_[n].child = -1;
    }
    std::string url() const {
        return "kafka://" + brokers();
    }
    std::string brokers() const {
        std::string all;
        for (const broker &one : brokers_)
            all += (&one == brokers_.data() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(one.port);
        return all;
    }

private:
    struct broker {
        int port = 0, controller_port = 0;
        pid_t child = -1;
    };

    static int bound_port(int descriptor) {
        sockaddr_in at{};
        socklen_t size = sizeof at;
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(descriptor, reinterpret_cast<sockaddr *>(&at), sizeof at) ||
            getsockname(descriptor, reinterpret_cast<sockaddr *>(&at), &size))
            return 0;
        return ntohs(at.sin_port);
    }
    // All at once, so that they differ.
    bool choose_ports() {
        std::vector<int> sockets;
        for (broker &one : brokers_)
            for (int *port : {&one.port, &one.controller_port}) {
                sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
                *port = bound_port(sockets.back());
            }
        for (int each : sockets)
            close(each);
        return brokers_.back().controller_port > 0;
    }
    std::string settings_of(size_t n) const {
        return folder_.file(("settings-" + std::to_string(n)).c_str());
    }
    bool write_settings(size_t n) const {
        FILE *file = fopen(settings_of(n).c_str(), "w");
        if (!file)
            return false;
        std::string voters;
        for (size_t v = 0; v < brokers_.size(); v++)
            voters +=
                (v ? "," : "") + std::to_string(v + 1) + "@127.0.0.1:" + std::to_string(brokers_[v].controller_port);
        const size_t copies = brokers_.size() < 3 ? 1 : 3;
        fprintf(file,
                "process.roles=broker,controller\nnode.id=%zu\ncontroller.quorum.voters=%s\n"
                "listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d\n"
                "advertised.listeners=PLAINTEXT://127.0.0.1:%d\ncontroller.listener.names=CONTROLLER\n"
                "log.dirs=%s\nauto.create.topics.enable=false\nnum.partitions=1\n"
                "broker.session.timeout.ms=1000\nbroker.heartbeat.interval.ms=100\n"
                "log.cleaner.dedupe.buffer.size=2097152\ntransaction.state.log.replication.factor=%zu\n"
                "transaction.state.log.min.isr=1\ntransaction.state.log.num.partitions=1\n",
                n + 1, voters.c_str(), brokers_[n].port, brokers_[n].controller_port, brokers_[n].port,
                folder_.file(("log-" + std::to_string(n)).c_str()).c_str(), copies);
        return fclose(file) == 0;
    }
    bool format() {
        for (size_t n = 0; n < brokers_.size(); n++) {
            int status = -1;
            if (!write_settings(n))
                return false;
            const pid_t child =
                java("kafka.tools.StorageTool", {"format", "-t", "dGFpeWVuLXRlc3QtbG9nIQ", "-c", settings_of(n)});
            if (child <= 0 || waitpid(child, &status, 0) != child || status != 0)
                return false;
        }
        return true;
    }
    pid_t java(const std::string &program, const std::vector<std::string> &words) const {
        const std::string jars = std::string(getenv("TAIYEN_KAFKA")) + "/*", out = folder_.file("output");
        std::vector<std::string> all = {"java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
                                        jars,   program};
        all.insert(all.end(), words.begin(), words.end());
        std::vector<char *> arguments;
        for (std::string &word : all)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int descriptor = open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            dup2(descriptor, STDOUT_FILENO);
            dup2(descriptor, STDERR_FILENO);
            execvp("java", arguments.data());
            _exit(127);
        }
        return child;
    }

    temporary_folder folder_;
    std::vector<broker> brokers_;
};

} // namespace taiyen::test
