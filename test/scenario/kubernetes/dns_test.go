package kubernetes

import (
	"context"
	"fmt"
	"hash/fnv"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/test/kit"
)

// resolve queries the master's DNS server. It returns the response code and the first record of the
// response.
func resolve(c *kit.Cluster, network string, kind uint16, name string) string {
	client := dns.Client{Net: network}
	response, _, err := client.Exchange(new(dns.Msg).SetQuestion(name, kind), fmt.Sprintf("%s:8053", c.Address))
	if err != nil {
		return err.Error()
	}
	text := dns.RcodeToString[response.Rcode]
	if len(response.Answer) > 0 {
		text += " " + strings.TrimPrefix(response.Answer[0].String(), response.Answer[0].Header().String())
	}
	return text
}

// hash returns the DNS label that OpenShift 3.11 derives from an address.
func hash(address string) string {
	sum := fnv.New32a()
	sum.Write([]byte(address))
	return fmt.Sprintf("%x", sum.Sum32())
}

// TestDigPrintsAddressesOfServices runs the guide's command `dig SERVICE.PROJECT A +search +short`
// with the master's DNS server. dig's arguments replace the search domain and the ndots option in a
// pod's resolv.conf.
func TestDigPrintsAddressesOfServices(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: members}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: members}
subsets: [{addresses: [{ip: 198.18.255.8}, {ip: 198.18.255.9}], ports: [{port: 8080}]}]
`)
	for name, want := range map[string]string{
		"front":   c.OC("get", "service", "front", "-o", "jsonpath={.spec.clusterIP}"),
		"members": "198.18.255.8 198.18.255.9",
	} {
		c.WaitFor("addresses of "+name, func(ctx context.Context) error {
			output, err := exec.CommandContext(ctx, "dig", "@"+c.Address.String(), "-p", "8053", "+domain=svc.cluster.local", "+ndots=5",
				name+"."+c.Namespace, "A", "+search", "+short").CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, output)
			}
			addresses := strings.Fields(string(output))
			slices.Sort(addresses) // the order of the records differs between queries
			if got := strings.Join(addresses, " "); got != want {
				return fmt.Errorf("%q, want %q", got, want)
			}
			return nil
		})
	}
}

func TestMasterRespondsToDNSQueriesAsIn311(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: web}
subsets: [{addresses: [{ip: 198.18.255.7}], ports: [{name: http, port: 8080}]}]
`)
	address := c.OC("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	base := "web." + c.Namespace
	for _, tt := range []struct {
		kind       uint16
		name, want string
	}{
		{dns.TypeA, base + ".svc.cluster.local.", "NOERROR " + address},
		{dns.TypeA, base + ".cluster.local.", "NOERROR " + address},
		{dns.TypeA, base + ".endpoints.cluster.local.", "NOERROR 198.18.255.7"},
		{dns.TypeA, "_endpoints." + base + ".svc.cluster.local.", "NOERROR 198.18.255.7"},
		{dns.TypeSRV, "_http._tcp." + base + ".svc.cluster.local.", "NOERROR 10 100 80 " + hash(address) + "." + base + ".svc.cluster.local."},
		{dns.TypeSRV, base + ".svc.cluster.local.", "NOERROR 10 100 0 " + hash(address) + "." + base + ".svc.cluster.local."},
		{dns.TypeA, hash(address) + "." + base + ".svc.cluster.local.", "NOERROR " + address},
		{dns.TypeSRV, "_http._tcp." + base + ".endpoints.cluster.local.", "NOERROR 0 100 8080 198-18-255-7." + base + ".endpoints.cluster.local."},
		{dns.TypeA, "openshift.default.svc.cluster.local.", "NOERROR 172.30.0.1"},
		{dns.TypeA, "nothing." + c.Namespace + ".svc.cluster.local.", "NXDOMAIN"},
		{dns.TypeA, "www.example.com.", "REFUSED"},
	} {
		for _, network := range []string{"udp", "tcp"} {
			c.WaitFor(tt.name+" over "+network, func(context.Context) error {
				if got := resolve(c, network, tt.kind, tt.name); got != tt.want {
					return fmt.Errorf("%s, want %s", got, tt.want)
				}
				return nil
			})
		}
	}
}
