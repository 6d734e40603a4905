package csi

import (
	"github.com/slipway-platform/slipway/storage/csi/attach"
	"github.com/slipway-platform/slipway/storage/csi/capacity"
	"github.com/slipway-platform/slipway/storage/csi/health"
	"github.com/slipway-platform/slipway/storage/csi/modify"
	"github.com/slipway-platform/slipway/storage/csi/provision"
	"github.com/slipway-platform/slipway/storage/csi/resize"
	"github.com/slipway-platform/slipway/storage/csi/session"
	"github.com/slipway-platform/slipway/storage/csi/snapshot"
)

// Options holds each feature's options. The zero value is suitable for any driver.
type Options struct {
	Attach    attach.Options
	Provision provision.Options
	Capacity  capacity.Options
	Snapshot  snapshot.Options
	Resize    resize.Options
	Modify    modify.Options
	Health    health.Options
}

// Features returns all features.
func Features(options Options) []session.Feature {
	return []session.Feature{
		attach.Feature(options.Attach),
		provision.Feature(options.Provision),
		capacity.Feature(options.Capacity),
		snapshot.Feature(options.Snapshot),
		resize.Feature(options.Resize),
		modify.Feature(options.Modify),
		health.Feature(options.Health),
	}
}
