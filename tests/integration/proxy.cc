#include "tests/integration/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/check.h"

namespace fairlead::integration {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void SetNonBlocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  const int one = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

}  // namespace

Proxy::Proxy(int target_port) : target_port_(target_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  FAIRLEAD_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  FAIRLEAD_CHECK(listen(listener_, 64) == 0, "listen");
  FAIRLEAD_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0, "bind");
  port_ = ntohs(address.sin_port);
  SetNonBlocking(listener_);
  FAIRLEAD_CHECK(pipe2(wake_, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
  thread_ = std::thread([this] { Run(); });
}

Proxy::~Proxy() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  Wake();
  thread_.join();
  for (Connection& connection : connections_) Close(connection);
  for (const int descriptor : {listener_, wake_[0], wake_[1]}) close(descriptor);
}

void Proxy::Wake() const {
  const char byte = 0;
  // A full pipe wakes too.
  [[maybe_unused]] const ssize_t written = write(wake_[1], &byte, 1);
}

void Proxy::Cut() {
  const std::lock_guard<std::mutex> lock(mutex_);
  cut_ = true;
  for (Connection& connection : connections_) connection.broken = true;
  Wake();
}

void Proxy::Mend() {
  const std::lock_guard<std::mutex> lock(mutex_);
  cut_ = false;
}

void Proxy::HoldRequests(bool hold) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hold_up_ = hold;
  Wake();
}

void Proxy::HoldAnswers(bool hold) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hold_down_ = hold;
  Wake();
}

size_t Proxy::held_requests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t bytes = 0;
  for (const Connection& connection : connections_) bytes += connection.up.kept.size();
  return bytes;
}

void Proxy::Close(Connection& connection) {
  close(connection.client);
  close(connection.server);
}

void Proxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_port_);
  if (cut_ || connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(server);
    close(client);
    return;
  }
  SetNonBlocking(client);
  SetNonBlocking(server);
  connections_.push_back({client, server, {}, {}, false});
}

bool Proxy::Move(int from, int to, bool readable, bool hold, Direction& direction) {
  if (readable && !direction.ended) {
    char buffer[65536];
    const ssize_t got = read(from, buffer, sizeof(buffer));
    if (got > 0) {
      direction.kept.append(buffer, static_cast<size_t>(got));
    } else if (got == 0) {
      direction.ended = true;
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    }
  }
  if (!hold && !direction.kept.empty()) {
    const ssize_t put = send(to, direction.kept.data(), direction.kept.size(), MSG_NOSIGNAL);
    if (put > 0) {
      direction.kept.erase(0, static_cast<size_t>(put));
    } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    }
  }
  // In HTTP/2 neither side half-closes: the end of one side ends both, and held bytes are lost, as
  // on a cut line.
  return !(direction.ended && (direction.kept.empty() || hold));
}

void Proxy::Run() {
  for (;;) {
    std::vector<pollfd> polled = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
      for (const Connection& c : connections_) {
        const auto events = [](const Direction& in, const Direction& out, bool hold_out) {
          return static_cast<int16_t>((in.ended ? 0 : POLLIN) |
                                      (!out.kept.empty() && !hold_out ? POLLOUT : 0));
        };
        polled.push_back({c.client, events(c.up, c.down, hold_down_), 0});
        polled.push_back({c.server, events(c.down, c.up, hold_up_), 0});
      }
    }
    poll(polled.data(), polled.size(), -1);
    const std::lock_guard<std::mutex> lock(mutex_);
    char drain[64];
    while (read(wake_[0], drain, sizeof(drain)) > 0) {
    }
    size_t i = 2;
    for (auto c = connections_.begin(); c != connections_.end();) {
      constexpr int kReadable = POLLIN | POLLHUP | POLLERR;
      const bool alive =
          !c->broken &&
          Move(c->client, c->server, (polled[i].revents & kReadable) != 0, hold_up_, c->up) &&
          Move(c->server, c->client, (polled[i + 1].revents & kReadable) != 0, hold_down_, c->down);
      i += 2;
      if (alive) {
        ++c;
      } else {
        Close(*c);
        c = connections_.erase(c);
      }
    }
    if ((polled[0].revents & POLLIN) != 0) Accept();
  }
}

}  // namespace fairlead::integration
