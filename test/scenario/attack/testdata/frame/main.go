// Command frame sends and receives raw frames on eth0, as a program with CAP_NET_RAW can.
//
//	frame send HEX...   sends frames
//	frame show WORD     prints "listening" and then the frames that arrive, until one contains WORD
//
// Two verbs need no capability:
//
//	frame tell ADDRESS WORD  sends a UDP datagram
//	frame ping ADDRESS       sends an ICMP echo request and waits for the reply
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "frame:", err)
		os.Exit(1)
	}
}

func run(verb string, args []string) error {
	switch verb {
	case "tell":
		conn, err := net.Dial("udp4", net.JoinHostPort(args[0], "7"))
		if err == nil {
			_, err = conn.Write([]byte(args[1]))
		}
		return err
	case "ping":
		return ping(netip.MustParseAddr(args[0]))
	}
	return raw(verb, args)
}

// ping uses an ICMP datagram socket, which the net.ipv4.ping_group_range sysctl allows.
func ping(address netip.Addr) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	request := []byte{8, 0, 0, 0, 0, 0, 0, 1} // The kernel adds identifier and checksum.
	if err := syscall.Sendto(fd, request, 0, &syscall.SockaddrInet4{Addr: address.As4()}); err != nil {
		return err
	}
	_, err = syscall.Read(fd, make([]byte, 64))
	return err
}

func raw(verb string, args []string) error {
	device, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	protocol := binary.NativeEndian.Uint16([]byte{0, syscall.ETH_P_ALL})
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, int(protocol))
	if err != nil {
		return err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: protocol, Ifindex: device.Index}); err != nil {
		return err
	}
	if verb == "show" {
		return show(fd, []byte(args[0]))
	}
	for _, arg := range args {
		frame, err := hex.DecodeString(arg)
		if err == nil {
			_, err = syscall.Write(fd, frame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func show(fd int, last []byte) error {
	fmt.Println("listening")
	buffer := make([]byte, 2048)
	for {
		n, err := syscall.Read(fd, buffer)
		if err != nil {
			return err
		}
		fmt.Printf("%q\n", buffer[:n])
		if bytes.Contains(buffer[:n], last) {
			return nil
		}
	}
}
