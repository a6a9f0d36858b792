// orders-demo: a shop whose heaps and invoices in an SQL database change together, and whose processes are killed again
// and again. Start reading at shop.hpp; the agents by which a database takes part in a distributed transaction are
// sqlite_agent.hpp, postgres_agent.hpp and postgres_resource_manager.hpp.
#include "child_process.hpp"
#include "folder.hpp"
#include "kill_rounds.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

struct arguments {
    std::string folder = demo::default_folder().string();
    std::string database = "sqlite";
    std::string where;
    std::string role;
    std::string only = "each";
    unsigned rounds = 30;
    unsigned check_every = 20;
    orders::role_plan inner;
};

int role_of(const std::string &name) {
    const auto *found = std::find(std::begin(orders::role_names), std::end(orders::role_names), name);
    return found == std::end(orders::role_names) ? -1 : static_cast<int>(found - orders::role_names);
}

int be_role(arguments &given) {
    orders::role_plan &plan = given.inner;
    plan.paths.folder = given.folder;
    plan.database = given.database;
    plan.where = given.where;
    switch (static_cast<orders::role>(role_of(given.role))) {
    case orders::role::taker:
        orders::run_taker(plan);
    case orders::role::worker:
        orders::run_worker(plan);
    case orders::role::depot:
        orders::run_depot(plan);
    case orders::role::prover:
        break;
    }
    const std::string problem = orders::prove(plan);
    if (!problem.empty())
        std::fprintf(stderr, "NOT PROVEN: %s\n", problem.c_str());
    return problem.empty() ? 0 : 1;
}

int run_demo(const arguments &given) {
    orders::kill_plan plan;
    plan.paths.folder = given.folder;
    plan.database = given.database;
    plan.where = given.where;
    plan.rounds = given.rounds;
    plan.check_every = std::max(given.check_every, 1u);
    plan.seed = given.inner.seed;
    plan.is_apart = given.inner.is_apart;
    plan.only = given.only == "each" ? -1 : role_of(given.only);
    for (const char *name : {"counter", "queue", "shop", "depot"})
        demo::prepare_folder(plan.paths.folder, plan.paths.heap(name), {"", "-journal", "-log"});
    orders::found_heaps(plan.paths);
    orders::found_database(plan.database, plan.where);
    std::printf("A shop in four heaps in %s, and its invoices in a database (%s)\n", demo::shown(given.folder).c_str(),
                given.database.c_str());
    std::printf("Processes take orders, do them in heaps and database together, and send parcels; killed %u times %s\n",
                plan.rounds, plan.only < 0 ? "each" : given.only.c_str());
    unsigned next = 0;
    const unsigned all = plan.only < 0 ? 3 * plan.rounds : plan.rounds;
    const orders::kill_result result = orders::run_kill_rounds(plan, [&](const orders::kill_result &so_far) {
        if (so_far.kills < next)
            return;
        next = so_far.kills + std::max(all / 5, 1u);
        std::printf("  %5u kills, %s orders acknowledged, %s done in heaps and database\n", so_far.kills,
                    demo::with_commas(so_far.acknowledged).c_str(), demo::with_commas(so_far.done).c_str());
        std::fflush(stdout);
    });
    if (!result.failure.empty()) {
        std::printf("\nNOT PROVEN, %s. The files stay as they are.\n", result.failure.c_str());
        return 1;
    }
    std::printf("  %s times a worker found a distributed transaction in doubt, and resolved it\n",
                demo::with_commas(result.resolved).c_str());
    std::printf("All proven: %u kills, looked at %u times; %s orders acknowledged, each done once, in heaps and "
                "database;\nmoney and stock add up, each parcel left once, and nothing is in doubt.\n",
                result.kills, result.proofs, demo::with_commas(result.acknowledged).c_str());
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    arguments given;
    CLI::App app("A shop whose heaps and database change together, killed again and again");
    app.add_option("--folder", given.folder, "where the files are put")->capture_default_str();
    app.add_option("--database", given.database,
                   "sqlite, postgres (by a row for each distributed transaction) or postgres-prepared")
        ->capture_default_str();
    app.add_option("--where", given.where,
                   "SQLite's file (invoices.db in the folder), or what libpq takes (TAIYEN_POSTGRES)");
    app.add_option("--rounds", given.rounds, "kills of each process")
        ->envname("TAIYEN_ORDERS_KILLS")
        ->capture_default_str();
    app.add_option("--kill", given.only, "taker, worker, depot, or each of them in turn")
        ->check(CLI::IsMember({"each", "taker", "worker", "depot"}))
        ->capture_default_str();
    app.add_option("--check-every", given.check_every, "kills after which everything is looked at")
        ->capture_default_str();
    app.add_option("--seed", given.inner.seed, "of the random numbers")->capture_default_str();
    app.add_flag("--apart", given.inner.is_apart, "heaps and database commit by themselves: the proof will fail");
    // For the processes that this one starts.
    app.add_option("--role", given.role)->group("")->check(CLI::IsMember({"taker", "worker", "depot", "prover"}));
    app.add_option("--pipe", given.inner.pipe)->group("");
    app.add_option("--listening", given.inner.listening)->group("");
    app.add_option("--to", given.inner.to)->group("");
    app.add_option("--acknowledged", given.inner.acknowledged)->group("");
    app.add_flag("--quiet", given.inner.is_quiet)->group("");
    app.add_flag("--final", given.inner.is_final)->group("");
    CLI11_PARSE(app, argc, argv);
    const char *server = std::getenv("TAIYEN_POSTGRES");
    if (given.where.empty() && given.database == "sqlite")
        given.where = given.folder + "/invoices.db";
    else if (given.where.empty() && server != nullptr)
        given.where = server;
    try {
        return given.role.empty() ? run_demo(given) : be_role(given);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "orders-demo: %s\n", error.what());
        return 1;
    }
}
