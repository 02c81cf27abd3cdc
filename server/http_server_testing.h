// A client of bare sockets, for the tests of the server. Header only; never part of the product.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

}  // namespace fairlead::server::testing
