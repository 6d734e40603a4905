package kit

import (
	"fmt"
	"net/netip"
	"strings"
)

// SetEgress sets a field that contains the egress addresses of a host ("hostsubnet") or project
// ("netnamespace"), with the command in OpenShift's guide. Without values, it sets an empty list.
func (c *Cluster) SetEgress(kind, name, field string, values ...string) {
	c.t.Helper()
	list := ""
	if len(values) > 0 {
		list = `"` + strings.Join(values, `", "`) + `"`
	}
	c.OC("patch", kind, name, "-p", fmt.Sprintf(`{"%s": [%s]}`, field, list))
}

// InSegment returns the address with the given last byte in the machine's network segment.
func (m *Machine) InSegment(last byte) string {
	octets := m.Address.As4()
	octets[3] = last
	return netip.AddrFrom4(octets).String()
}
