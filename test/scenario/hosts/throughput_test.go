package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestThroughputBetweenPodsAndHostsIsMeasured measures the throughput between pods on two hosts,
// and then between the hosts, as the guide's section "Troubleshooting Throughput Issues" describes.
func TestThroughputBetweenPodsAndHostsIsMeasured(t *testing.T) {
	c, host := newServers(t)
	near, far := c.Namespace+"/near", c.Namespace+"/far"
	host.StartSlipway(nil, "network", "throughput", "serve", "--pod", far)
	host.StartSlipway(nil, "network", "throughput", "serve")
	positive := regexp.MustCompile(`(to .*|received) \d*[1-9][\d.]* [kMG]bit/s`)
	for _, arguments := range [][]string{
		{c.Pod("far").Status.PodIP, "--pod", near},
		{c.Pod("far").Status.PodIP, "--pod", near, "--udp"},
		{host.Address.String()},
		{host.Address.String(), "--udp"},
	} {
		c.WaitFor("measurement "+strings.Join(arguments, " "), func(context.Context) error {
			result := c.Slipway(append([]string{"network", "throughput", "measure", "--duration", "100ms"}, arguments...)...)
			if result.Code != 0 || !positive.MatchString(result.Stdout) {
				return fmt.Errorf("exit code %d: %s%s", result.Code, result.Stdout, result.Stderr)
			}
			t.Log(result.Stdout)
			return nil
		})
	}
}

// packets returns the source and destination addresses of the packets in a capture.
func packets(path string) (pairs []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		return nil, err
	}
	for {
		frame, _, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return pairs, nil
		}
		if err != nil {
			return nil, err
		}
		packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
		if network := packet.NetworkLayer(); network != nil {
			pairs = append(pairs, network.NetworkFlow().String())
		}
	}
}

func TestPacketsOfPodsAndDevicesAreCaptured(t *testing.T) {
	c, host := newServers(t)
	near, far := c.Pod("near").Status.PodIP, c.Pod("far").Status.PodIP
	for place, capture := range map[string]struct {
		host      *kit.Host
		arguments []string
	}{
		"pod of the client":    {c, []string{"--pod", c.Namespace + "/near", "--host", near, "--host", far}},
		"pod of the server":    {host, []string{"--pod", c.Namespace + "/far", "--host", near, "--port", "8080"}},
		"device of the server": {host, []string{"--device", "eth0", "--host", near, "--host", far, "--port", "8080"}},
		"client, and its host": {c, []string{c.Namespace + "/near", "--device", "eth0", "--host", near, "--host", far}},
	} {
		dump := filepath.Join(t.TempDir(), "dump.pcap")
		capture.host.StartSlipway(nil, append([]string{"network", "capture", "--count", "8", "--write", dump}, capture.arguments...)...)
		c.WaitFor("packets in "+place, func(context.Context) error {
			c.WaitFetch("near", "http://"+far+":8080/", "I am far")
			pairs, err := packets(dump)
			if err == nil && len(pairs) != 8 {
				err = fmt.Errorf("the capture has %d packets", len(pairs))
			}
			for _, pair := range pairs {
				if pair != near+"->"+far && pair != far+"->"+near {
					t.Errorf("packet %s in %s", pair, place)
				}
			}
			return err
		})
	}
	result := c.Slipway("network", "capture", "--pod", c.Namespace+"/far", "--write", filepath.Join(t.TempDir(), "none"))
	if result.Code == 0 || !strings.Contains(result.Stderr, "it does not run on this host") {
		t.Errorf("capture in a pod of another host: exit code %d, %s", result.Code, result.Stderr)
	}
}
