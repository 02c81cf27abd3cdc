// A client of bare sockets, for the tests of the server. Header only; never part of the product.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace fairlead::server::testing {

// A connection to that port of 127.0.0.1.
inline int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// What comes until the server closes; closes the connection.
inline std::string ReadAll(int fd) {
  std::string all;
  char buffer[4096];
  ssize_t count;
  while ((count = read(fd, buffer, sizeof(buffer))) > 0) {
    all.append(buffer, static_cast<size_t>(count));
  }
  close(fd);
  return all;
}

struct Answer {
  int status = 0;  // 0: what came is no answer
  std::string body;
};

// GET, on a connection of its own.
inline Answer Get(int port, const std::string& path) {
  const int fd = Connect(port);
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  const std::string all = ReadAll(fd);
  const size_t end = all.find("\r\n\r\n");
  if (all.size() < 12 || end == std::string::npos) return {};
  return {std::atoi(all.substr(9, 3).c_str()), all.substr(end + 4)};
}

}  // namespace fairlead::server::testing
