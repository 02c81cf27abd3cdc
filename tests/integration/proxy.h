// A TCP proxy on loopback between a client and the API server, with which a test loses connections
// and holds back traffic. It sees no content: TLS passes through.
//
// Thread-safety: every method from any thread; one thread of its own moves the bytes. Complexity:
// linear in the connections, for a few dozen.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace fairlead::integration {

class Proxy {
 public:
  // To 127.0.0.1:port.
  explicit Proxy(int target_port);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  [[nodiscard]] int port() const { return port_; }

  // Ends every connection, and every new one at once until Mend.
  void Cut();
  void Mend();
  // Holds the client's bytes (or the server's answers) until the next call.
  void HoldRequests(bool hold);
  void HoldAnswers(bool hold);
  // Bytes of clients that are held.
  [[nodiscard]] size_t held_requests() const;

 private:
  struct Direction {
    std::string kept;
    bool ended = false;
  };
  struct Connection {
    int client = -1, server = -1;
    Direction up, down;
    bool broken = false;
  };

  void Run();
  void Accept();
  // Reads the available bytes, and writes them unless held. False: the connection is over.
  static bool Move(int from, int to, bool readable, bool hold, Direction& direction);
  static void Close(Connection& connection);
  void Wake() const;

  int listener_ = -1, port_ = 0, target_port_;
  int wake_[2] = {-1, -1};
  mutable std::mutex mutex_;
  std::list<Connection> connections_;
  bool cut_ = false, hold_up_ = false, hold_down_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace fairlead::integration
