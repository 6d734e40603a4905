package config

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// etcdMaintenance validates the settings for etcd snapshots and for the maintenance of etcd's
// files.
func (c *checker) etcdMaintenance(m *MasterExtension) {
	snapshots, maintenance := &m.EtcdSnapshots, &m.EtcdMaintenance
	for key, interval := range map[string]time.Duration{
		"slipway.etcdSnapshots.interval":   snapshots.Interval.Duration,
		"slipway.etcdMaintenance.interval": maintenance.Interval.Duration,
	} {
		if interval < time.Second {
			c.fail(key, "is %s, must be at least 1s", interval)
		}
	}
	if snapshots.Keep < 1 {
		c.fail("slipway.etcdSnapshots.keep", "is %d, must be at least 1; to save no copies, set disabled", snapshots.Keep)
	}
	if _, err := maintenance.FreeBytes(); err != nil {
		c.fail("slipway.etcdMaintenance.freeSpace", "%v", err)
	}
}

// FreeBytes returns the minimum unused space, in bytes, at which a database file is defragmented.
func (m *EtcdMaintenance) FreeBytes() (int64, error) {
	quantity, err := resource.ParseQuantity(m.FreeSpace)
	if err != nil || quantity.Sign() <= 0 {
		return 0, fmt.Errorf("is %q, must be a quantity such as 256Mi", m.FreeSpace)
	}
	return quantity.Value(), nil
}
