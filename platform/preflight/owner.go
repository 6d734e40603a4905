package preflight

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// owner is the process that owns a socket. Its PID is 0 if the process was not found.
type owner struct {
	pid  int
	name string
	unit string // the systemd service of the process
}

func (o owner) String() string {
	if o.pid == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d (%s)", o.pid, o.name)
}

// stop returns the command that stops the process.
func (o owner) stop() string {
	switch {
	case o.unit != "":
		return "systemctl stop " + o.unit
	case o.pid != 0:
		return fmt.Sprintf("kill %d", o.pid)
	}
	return "find it with: ss -lnup; ss -lntp; and stop it"
}

// owner finds the process that listens on an address, or on a different address whose use prevents
// binding the address.
func (m Machine) owner(network string, address netip.AddrPort) owner {
	var inodes []string
	for _, family := range []string{"", "6"} {
		content, err := os.ReadFile(filepath.Join(m.Root, "proc/net", network+family))
		if err != nil {
			continue
		}
		inodes = append(inodes, listeners(string(content), network, address)...)
	}
	links, err := filepath.Glob(filepath.Join(m.Root, "proc/[0-9]*/fd/*"))
	if err != nil {
		return owner{}
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // the descriptor was closed, or belongs to another user
		}
		inode, isSocket := strings.CutPrefix(target, "socket:[")
		if !isSocket || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		return m.process(filepath.Dir(filepath.Dir(link)))
	}
	return owner{}
}

// process describes the process that a directory in /proc represents.
func (m Machine) process(dir string) owner {
	existing := owner{name: "unknown"}
	existing.pid, _ = strconv.Atoi(filepath.Base(dir)) // the pattern matches only digits
	if name, err := os.ReadFile(filepath.Join(dir, "comm")); err == nil {
		existing.name = strings.TrimSpace(string(name))
	}
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return existing
	}
	for line := range strings.Lines(string(groups)) {
		if unit := filepath.Base(strings.TrimSpace(line)); strings.HasSuffix(unit, ".service") {
			existing.unit = unit
		}
	}
	return existing
}

// listeners parses a net/tcp or net/udp table (proc(5)). It returns the inodes of sockets that
// prevent other processes from binding the address.
func listeners(table, network string, address netip.AddrPort) []string {
	state := "0A" // the kernel's code for LISTEN
	if network == "udp" {
		state = "07" // the kernel's code for a bound socket that is not connected
	}
	var inodes []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != state {
			continue
		}
		local, err := parseAddress(fields[1])
		if err != nil || local.Port() != address.Port() {
			continue
		}
		if local.Addr() == address.Addr() || local.Addr().IsUnspecified() || address.Addr().IsUnspecified() {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

// parseAddress parses an address such as "0100007F:20FB": four-byte words in the machine's byte
// order, followed by the port.
func parseAddress(text string) (netip.AddrPort, error) {
	words, port, _ := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	raw, err := hex.DecodeString(words)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("address %q is not in the format of /proc", text)
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("address %q is not in the format of /proc", text)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(number)), nil
}
