package cni

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Devices contains the names of the devices in a network namespace. Have queries the kernel for
// each device if Devices is the zero value.
type Devices struct{ names map[string]bool }

const (
	// skipStats is RTEXT_FILTER_SKIP_STATS.
	skipStats = 1 << 3
	// maxDumps is the maximum number of attempts to list the devices while they are changing.
	maxDumps = 5
)

// ListDevices returns the devices in this thread's network namespace. For many devices, this is
// much cheaper than Pod.HasDevice. If it fails, it returns the zero value.
func ListDevices() Devices {
	for range maxDumps {
		request := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		request.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		request.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStats)))
		messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
		if err == nil {
			names := make(map[string]bool, len(messages))
			for _, message := range messages {
				names[nameOf(message)] = true
			}
			return Devices{names}
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return Devices{}
}

// nameOf returns the name of the device that a message describes. It does not use
// nl.ParseRouteAttr, which would decode all attributes.
func nameOf(message []byte) string {
	attributes := message[min(unix.SizeofIfInfomsg, len(message)):]
	for len(attributes) >= unix.SizeofRtAttr {
		length, kind := int(binary.NativeEndian.Uint16(attributes)), binary.NativeEndian.Uint16(attributes[2:])
		if length < unix.SizeofRtAttr || length > len(attributes) {
			break
		}
		if kind == unix.IFLA_IFNAME {
			name, _, _ := bytes.Cut(attributes[unix.SizeofRtAttr:length], []byte{0})
			return string(name)
		}
		attributes = attributes[min((length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(attributes)):]
	}
	return ""
}

// Have reports whether a pod's device exists.
func (d Devices) Have(p Pod) bool {
	if d.names == nil {
		return p.HasDevice()
	}
	return d.names[p.Device]
}
