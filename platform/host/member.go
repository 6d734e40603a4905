package host

import (
	"time"

	"github.com/slipway-platform/slipway/pki"
)

// MembershipFile returns the path of the file that stores Membership.
func (h *Host) MembershipFile() string { return h.Path("node", "membership.json") }

// Joined reports whether the host has joined another host's cluster as a node. In this case, it
// runs no control plane.
func (h *Host) Joined() bool { return h.Membership != nil }

// Member describes a joined host's credentials.
func (h *Host) Member() pki.Member {
	m := pki.Member{Dir: h.PKIDir(), URL: h.APIURL("127.0.0.1"), NodeName: h.Node.NodeName}
	m.Router = h.Membership != nil && h.Membership.Router
	return m
}

// prepareMember is the equivalent of prepare for a joined host.
func (h *Host) prepareMember() error {
	m := h.Member()
	if err := h.CheckMember(); err != nil {
		return err
	}
	h.Credentials = &pki.Credentials{Files: m.Files()}
	return h.writeRegistryHosts()
}

// CheckMember returns an error if a joined host's credentials are missing or have expired. The
// error contains the remedy. On other hosts, CheckMember returns nil.
func (h *Host) CheckMember() error {
	if !h.Joined() {
		return nil
	}
	m := h.Member()
	if err := m.Check(); err != nil {
		return err
	}
	_, err := m.Certificate(time.Now())
	return err
}
