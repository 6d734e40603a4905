package kit

import (
	"fmt"
	"net/netip"
	"strings"
)

// SetEgress sets a field with egress addresses of a host ("hostsubnet") or project
// ("netnamespace"), as the guide of OpenShift does. Without values, the list becomes empty.
func (c *Cluster) SetEgress(kind, name, field string, values ...string) {
	c.t.Helper()
	list := ""
	if len(values) > 0 {
		list = `"` + strings.Join(values, `", "`) + `"`
	}
	c.OC("patch", kind, name, "-p", fmt.Sprintf(`{"%s": [%s]}`, field, list))
}

// InSegment returns the address in the network segment of the machine whose last byte is given.
func (m *Machine) InSegment(last byte) string {
	octets := m.Address.As4()
	octets[3] = last
	return netip.AddrFrom4(octets).String()
}
