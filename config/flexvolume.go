package config

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FlexVolumeOperations returns the valid keys of FlexVolumeDriver.Timeouts.
func FlexVolumeOperations() []string {
	return []string{
		"init", "getvolumename", "attach", "waitforattach", "isattached", "mountdevice", "mount",
		"expandvolume", "expandfs", "unmount", "unmountdevice", "detach",
	}
}

// flexVolumes validates slipway.flexVolume.
func (c *checker) flexVolumes(drivers map[string]FlexVolumeDriver) {
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		key, driver := join("slipway.flexVolume", name), drivers[name]
		if len(validation.IsQualifiedName(name)) > 0 || strings.Contains(name, "~") {
			c.fail(key, "is not a driver name; write <vendor>/<driver> such as example.com/loop")
		}
		for _, op := range slices.Sorted(maps.Keys(driver.Timeouts)) {
			at := join(key, "timeouts") + "." + op
			if !slices.Contains(FlexVolumeOperations(), op) {
				c.fail(at, "is not an operation; choose from %s", strings.Join(FlexVolumeOperations(), ", "))
				continue
			}
			if timeout := driver.Timeouts[op].Duration; timeout <= 0 {
				c.fail(at, "is %s, must be more than 0", timeout)
			}
		}
		c.notNegative(key+".concurrency", driver.Concurrency)
		if v := driver.VolumeName; v != "" && v != "driver" && v != "pv" {
			c.fail(key+".volumeName", "is %q, must be driver or pv", v)
		}
	}
}
