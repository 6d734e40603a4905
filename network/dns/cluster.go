package dns

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is CoreDNS's kubernetes plugin. Other handlers use its informers too.
type cluster struct {
	*kubernetes.Kubernetes
	domain string // with a trailing dot
}

// stanza is the configuration of the kubernetes plugin. With `pods insecure`, the server derives a
// pod's address from its name (1-2-3-4.namespace.pod), and does not check whether the pod exists,
// as in OpenShift 3. Otherwise, each host would have to watch all pods.
const stanza = `kubernetes %s in-addr.arpa ip6.arpa {
	pods insecure
	fallthrough in-addr.arpa ip6.arpa
}`

func newCluster(config *rest.Config, domain string) (*cluster, error) {
	domain = strings.ToLower(dns.Fqdn(domain))
	if _, valid := dns.IsDomainName(domain); !valid || domain == "." {
		return nil, fmt.Errorf("parse cluster domain %q: it is not a domain name", domain)
	}
	input := caddyfile.NewDispenser("kubernetes", strings.NewReader(fmt.Sprintf(stanza, domain)))
	input.Next()
	k, err := kubernetes.ParseStanza(&caddy.Controller{Dispenser: input})
	if err != nil {
		return nil, fmt.Errorf("configure cluster zone: %w", err)
	}
	k.ClientConfig = fixedConfig{config: config}
	// InitKubeCache returns functions that start and stop APIConn. Run does this instead.
	if _, _, err := k.InitKubeCache(context.Background()); err != nil {
		return nil, fmt.Errorf("prepare informers: %w", err)
	}
	return &cluster{Kubernetes: k, domain: domain}, nil
}

// labelsOf returns the labels of a name that precede the cluster domain, in lower case. ok is false
// for the domain itself and for names outside it.
func (c *cluster) labelsOf(name string) (labels []string, ok bool) {
	front, ok := strings.CutSuffix(strings.ToLower(name), "."+c.domain)
	if !ok || front == "" {
		return nil, false
	}
	return strings.Split(front, "."), true
}

// service returns a service, or nil if it does not exist.
func (c *cluster) service(name, namespace string) *object.Service {
	for _, s := range c.APIConn.SvcIndex(object.ServiceKey(name, namespace)) {
		return s
	}
	return nil
}

func (c *cluster) hasNamespace(name string) bool {
	_, err := c.APIConn.GetNamespaceByName(name)
	return err == nil
}

// fixedConfig passes an existing configuration to CoreDNS, which otherwise reads kubeconfig files.
type fixedConfig struct {
	kubeconfig // nil, because CoreDNS calls only the method below
	config     *rest.Config
}

type kubeconfig = clientcmd.ClientConfig

func (f fixedConfig) ClientConfig() (*rest.Config, error) {
	if f.config == nil {
		return nil, errors.New("the API client's configuration is missing")
	}
	config := rest.CopyConfig(f.config)
	config.UserAgent = "slipway-dns"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config, nil
}
