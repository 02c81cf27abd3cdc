package launch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// port is a TCP port on 127.0.0.1 that the kernel chose and that this process holds for its whole life.
//
// The socket is bound with SO_REUSEPORT and never listens: no other program can be given the port, a server of the same user
// that sets SO_REUSEPORT too (kube-apiserver --permit-port-sharing) can bind it at any time, again and again, and while none
// does, connections are refused. So there is no moment between "found a free port" and "the server has it".
type port struct {
	number     int
	descriptor int
}

func reservePort() (*port, error) {
	descriptor, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	number, err := bindLoopback(descriptor)
	if err != nil {
		unix.Close(descriptor)
		return nil, fmt.Errorf("reserving a port on 127.0.0.1: %w", err)
	}
	return &port{number: number, descriptor: descriptor}, nil
}

func bindLoopback(descriptor int) (int, error) {
	if err := unix.SetsockoptInt(descriptor, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(descriptor, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(descriptor)
	if err != nil {
		return 0, err
	}
	inet, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("unexpected address %T", address)
	}
	return inet.Port, nil
}

func (p *port) release() { unix.Close(p.descriptor) }
