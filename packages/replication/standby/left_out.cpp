// The functions of the engines that this build has no client library for.
#include "packages/common/common.hpp"

#include <taiyen/standby.h>

namespace {

[[maybe_unused]] ty_status refuse_engine(const char *engine, const char *library, ty_engine **opened) {
    if (opened)
        *opened = nullptr;
    return taiyen::common::fail(TY_E_UNSUPPORTED, std::string("open an engine on ") + engine, "",
                                std::string("have the library built with ") + library);
}

} // namespace

#if TAIYEN_WITHOUT_NATS
ty_status ty_jetstream_open(const char *, const char *, const ty_jetstream_options *, ty_engine **engine) {
    return refuse_engine("JetStream", "libnats", engine);
}
void ty_jetstream_close(ty_engine *) {}
#endif

#if TAIYEN_WITHOUT_KAFKA
ty_status ty_kafka_open(const char *, const char *, const ty_kafka_options *, ty_engine **engine) {
    return refuse_engine("Kafka", "librdkafka", engine);
}
void ty_kafka_close(ty_engine *) {}
#endif
