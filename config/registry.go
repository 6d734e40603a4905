package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// registry validates slipway.registry.
func (c *checker) registry(r *Registry) {
	c.listen("slipway.registry.bindAddress", r.BindAddress)
	if _, _, err := r.Reserved(); err != nil {
		c.fail("slipway.registry.reserve", "%v", err)
	}
	if _, _, err := r.Quota(); err != nil {
		c.fail("slipway.registry.projectQuota", "%v", err)
	}
}

// Reserved returns the disk space that pushes must leave free, either in bytes or as a share of the
// disk's size in [0, 1).
func (r *Registry) Reserved() (bytes int64, share float64, err error) { return parseReserve(r.Reserve) }

// Quota returns the limit on the size of a project's images, in bytes. limited is false if there is
// no limit.
func (r *Registry) Quota() (bytes int64, limited bool, err error) {
	if r.ProjectQuota == "none" {
		return 0, false, nil
	}
	quantity, err := resource.ParseQuantity(r.ProjectQuota)
	if err != nil || quantity.Sign() < 0 {
		return 0, false, fmt.Errorf("is %q, must be a quantity such as 50Gi, or none", r.ProjectQuota)
	}
	return quantity.Value(), true, nil
}
