// A scripted HTTP/1.1 server on 127.0.0.1 for the transport's tests, with or without TLS. The
// handler decides every byte of an answer, so the answer can be late, wrong or cut short.
//
// Thread-safety: the handler runs on one thread per connection; any thread may call the other
// methods.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fairlead::kube {

struct TlsIdentity {
  std::string certificate_pem, key_pem;
  std::string client_ca_pem;  // not empty: clients must show a certificate of this authority
};

// A private authority, created for each test.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;
  [[nodiscard]] std::string certificate_pem() const;
  // `alternative_names` as OpenSSL writes them: "IP:127.0.0.1", "DNS:kubernetes". Client
  // certificates need none.
  [[nodiscard]] TlsIdentity Issue(const std::string& common_name,
                                  const std::string& alternative_names = "") const;

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
};

class LoopbackServer {
 public:
  struct Request {
    std::string method, target, body;
    std::map<std::string, std::string> headers;  // names in lower case
    int connection = 0;                          // in order of acceptance, from 0
    std::string client_name;                     // common name of the client's certificate
  };
  class Connection {
   public:
    virtual ~Connection() = default;
    virtual void Write(const std::string& bytes) = 0;
    // Returns once the client has closed, or the server stops.
    virtual void WaitForClose() = 0;
    // Ends the connection after the handler.
    virtual void Close() = 0;

    // A whole answer with Content-Length. `extra` are header lines, each with its CR LF.
    void Answer(int status, const std::string& body, const std::string& extra = "");
    void Chunk(const std::string& bytes);  // of Transfer-Encoding: chunked
  };
  using Handler = std::function<void(const Request&, Connection&)>;

  explicit LoopbackServer(Handler handler, std::optional<TlsIdentity> tls = std::nullopt);
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  [[nodiscard]] std::string url() const;
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::vector<Request> requests() const;
  [[nodiscard]] int connections_accepted() const { return accepted_; }

 private:
  class Channel;
  void AcceptLoop();
  void Serve(int fd, int number);
  bool ReadRequest(Channel& channel, std::string& buffer, Request& request) const;

  const Handler handler_;
  void* tls_context_ = nullptr;
  int listen_fd_ = -1;
  int port_ = 0;
  std::atomic<int> accepted_ = 0;
  mutable std::mutex mutex_;  // guards the next three
  bool stopping_ = false;
  std::vector<int> open_;
  std::vector<Request> requests_;
  std::vector<std::thread> workers_;  // owned by the accept thread until it has ended
  std::thread acceptor_;
};

}  // namespace fairlead::kube
