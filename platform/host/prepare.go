package host

import (
	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/backup"
)

// Prepare creates the addresses, credentials and files that the processes require. The supervisor
// and each process call Prepare. Only the first call makes changes.
func (h *Host) Prepare() (err error) {
	if err := h.findAddress(); err != nil {
		return err
	}
	if backup.Interrupted(h.DataDir) {
		return errRestoring
	}
	if h.Joined() {
		return h.prepareMember()
	}
	if h.Cluster != nil && !h.Cluster.Complete {
		return errIncomplete
	}
	if h.Credentials, err = pki.Ensure(h.PKISpec()); err != nil {
		return err
	}
	if err := h.writeRegistryHosts(); err != nil {
		return err
	}
	if users := h.DeveloperFile(); users != "" {
		return htpasswd.EnsureFirstUser(users, Developer, h.DeveloperPassword())
	}
	return nil
}

// Developer is the name of the user that is created when a host first starts.
const Developer = "developer"
