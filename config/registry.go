package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// registry checks slipway.registry.
func (c *checker) registry(r *Registry) {
	c.listen("slipway.registry.bindAddress", r.BindAddress)
	if _, _, err := r.Reserved(); err != nil {
		c.fail("slipway.registry.reserve", "%v", err)
	}
	if _, _, err := r.Quota(); err != nil {
		c.fail("slipway.registry.projectQuota", "%v", err)
	}
}

// Reserved is what pushes leave of the disk: a number of bytes, or a part of its size between 0 and 1.
func (r *Registry) Reserved() (bytes int64, share float64, err error) { return parseReserve(r.Reserve) }

// Quota is how many bytes a project may have in the registry, if that is limited.
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
