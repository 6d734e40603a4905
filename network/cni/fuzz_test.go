package cni

import "testing"

// FuzzConfiguration verifies that an accepted configuration has valid ports and addresses.
func FuzzConfiguration(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"1.1.0","name":"pods","type":"slipway-cni","bridge":"b","podCIDR":"10.1.0.0/24","stateDir":"/s","nftTable":"t",
		"runtimeConfig":{"portMappings":[{"hostPort":80,"containerPort":8080,"protocol":"TCP","hostIP":"192.0.2.1"}]}}`))
	f.Add([]byte(`{"bridge":"b","podCIDR":"::/64","stateDir":"..","nftTable":"t","name":"../../etc"}`))
	f.Add([]byte(`{"podCIDR":"10.0.0.0/33","mtu":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse(text)
		if err != nil {
			return
		}
		if capacity(c.PodCIDR) < 1 || !c.PodCIDR.Contains(Gateway(c.PodCIDR)) {
			t.Errorf("%s has %d addresses", text, capacity(c.PodCIDR))
		}
		ports, err := c.ports()
		for _, port := range ports {
			if err == nil && (port.HostPort == 0 || port.ContainerPort == 0 || port.HostAddress.IsValid() && !port.HostAddress.Is4()) {
				t.Errorf("%s has the port %+v", text, port)
			}
		}
	})
}
