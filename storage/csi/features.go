package csi

import (
	"github.com/slipway-platform/slipway/storage/csi/attach"
	"github.com/slipway-platform/slipway/storage/csi/capacity"
	"github.com/slipway-platform/slipway/storage/csi/provision"
	"github.com/slipway-platform/slipway/storage/csi/session"
	"github.com/slipway-platform/slipway/storage/csi/snapshot"
)

// Options are what an administrator may choose of each concern. The zero value is good for any driver.
type Options struct {
	Attach    attach.Options
	Provision provision.Options
	Capacity  capacity.Options
	Snapshot  snapshot.Options
}

// Features are all concerns. Each serves the drivers that can do what it needs.
func Features(options Options) []session.Feature {
	return []session.Feature{
		attach.Feature(options.Attach),
		provision.Feature(options.Provision),
		capacity.Feature(options.Capacity),
		snapshot.Feature(options.Snapshot),
	}
}
