// What most tests include, compiled once for all of them. Each test still includes what it uses.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <taiyen/taiyen.h>
#include <thread>
#include <vector>
