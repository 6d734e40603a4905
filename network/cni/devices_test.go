package cni

import (
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

// addDevices creates devices in the test's network namespace.
func addDevices(t testing.TB, count int) (pods []Pod) {
	for i := range count {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = fmt.Sprintf("pod%d", i)
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = netlink.LinkDel(&netlink.Bridge{LinkAttrs: attrs}) })
		pods = append(pods, Pod{Device: attrs.Name})
	}
	return pods
}

func TestListOfDevicesAgreesWithEachDevice(t *testing.T) {
	pods := append(addDevices(t, 100), Pod{Device: "lo"}, Pod{Device: "missing0"}, Pod{})
	devices := ListDevices()
	if len(devices.names) < 101 {
		t.Fatalf("%d devices are listed, want at least 101", len(devices.names))
	}
	for _, pod := range pods {
		if has := pod.HasDevice(); devices.Have(pod) != has || (Devices{}).Have(pod) != has {
			t.Errorf("device %q: the list has it: %t, the kernel has it: %t", pod.Device, devices.Have(pod), has)
		}
	}
}

func TestNameInMalformedMessage(t *testing.T) {
	header := make([]byte, 16)
	for name, tt := range map[string]struct {
		attributes []byte
		want       string
	}{
		"no attributes":       {nil, ""},
		"name":                {[]byte{8, 0, 3, 0, 'l', 'o', 0, 0}, "lo"},
		"another attribute":   {[]byte{5, 0, 1, 0, 7, 0, 0, 0, 7, 0, 3, 0, 'l', 'o', 0}, "lo"},
		"length of 0":         {[]byte{0, 0, 3, 0, 'l', 'o', 0, 0}, ""},
		"length beyond end":   {[]byte{9, 0, 3, 0, 'l', 'o', 0, 0}, ""},
		"half of a header":    {[]byte{8, 0, 3}, ""},
		"unaligned attribute": {[]byte{5, 0, 1, 0, 7}, ""},
	} {
		if got := nameOf(append(header, tt.attributes...)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := nameOf(header[:3]); got != "" {
		t.Errorf("a short message has the name %q", got)
	}
}

func BenchmarkDevices(b *testing.B) {
	pods := addDevices(b, 250)
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			devices := ListDevices()
			for _, pod := range pods {
				devices.Have(pod)
			}
		}
	})
	b.Run("each", func(b *testing.B) {
		for b.Loop() {
			for _, pod := range pods {
				pod.HasDevice()
			}
		}
	})
}
