// Package virtualip parses the lists of virtual addresses that OpenShift 3's `oc adm ipfailover`
// accepts.
package virtualip

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Max is the maximum number of addresses in a list.
const Max = 1024

// Parse parses IPv4 addresses and ranges, separated by commas: 192.0.2.1, 192.0.2.10-14,
// 192.0.2.20-192.0.2.30. Duplicate addresses and an empty list are errors.
func Parse(list string) (addresses []netip.Addr, err error) {
	seen := map[netip.Addr]bool{}
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		first, last, err := bounds(text)
		if err != nil {
			return nil, err
		}
		for address := first; ; address = address.Next() {
			if seen[address] {
				return nil, fmt.Errorf("parse virtual addresses %q: %s appears twice", list, address)
			}
			if len(addresses) == Max {
				return nil, fmt.Errorf("parse virtual addresses %q: more than %d addresses", list, Max)
			}
			seen[address] = true
			addresses = append(addresses, address)
			if address == last {
				break
			}
		}
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("parse virtual addresses %q: set addresses such as 192.0.2.10-12,192.0.2.20", list)
	}
	return addresses, nil
}

// bounds returns the first and last address in a range. For a single address, it returns that
// address twice.
func bounds(text string) (first, last netip.Addr, err error) {
	start, end, isRange := strings.Cut(text, "-")
	if first, err = address(start); err != nil || !isRange {
		return first, first, err
	}
	if octet, err := strconv.ParseUint(end, 10, 8); err == nil {
		bytes := first.As4()
		bytes[3] = byte(octet)
		last = netip.AddrFrom4(bytes)
	} else if last, err = address(end); err != nil {
		return first, last, err
	}
	if last.Less(first) {
		return first, last, fmt.Errorf("parse virtual addresses %q: the range ends before it begins", text)
	}
	return first, last, nil
}

func address(text string) (netip.Addr, error) {
	parsed, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || !parsed.Is4() || parsed.IsUnspecified() || parsed.IsMulticast() || parsed.IsLoopback() {
		return parsed, fmt.Errorf("parse virtual address %q: it must be an IPv4 address that a host can have", text)
	}
	return parsed, nil
}
