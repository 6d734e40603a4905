// Package flexvolumedrivers proves on a real cluster what FlexVolume drivers get from it when
// everything around them goes wrong: processes killed in the middle of each operation, drivers that
// hang, print garbage, change or disappear; and that nothing is left afterwards.
//
// Most tests share one cluster, each with drivers and a namespace of its own. Those that kill its
// processes are not parallel, so that they run alone.
package flexvolumedrivers

import (
	"flag"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// settings give one driver deadlines that a test can wait for, and let kubelet look at volumes'
// sizes more often than once a minute.
const settings = `
kubeletArguments: {volume-stats-agg-period: [2s]}
slipway:
  flexVolume:
    deadline.example.com/disk:
      timeouts:
        {getvolumename: 1s, attach: 1s, waitforattach: 1s, mountdevice: 1s, mount: 1s, unmount: 1s, unmountdevice: 1s, detach: 1s}
`

// together is how many tests run at a time; most of them wait most of the time, for kubelet to try
// again.
const together = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", together); err != nil {
		panic(err)
	}
	kit.MainWith(m, kit.Options{Node: settings})
}
