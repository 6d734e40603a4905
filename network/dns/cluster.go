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

// cluster is CoreDNS's kubernetes plug-in with the informers that we share with it.
type cluster struct {
	*kubernetes.Kubernetes
	domain string // with a dot at the end
}

// pods insecure: the name of a pod is made from its address (1-2-3-4.namespace.pod), and is answered without knowing
// whether there is such a pod, as OpenShift 3 does; otherwise each host would have to watch every pod.
const stanza = `kubernetes %s in-addr.arpa ip6.arpa {
	pods insecure
	fallthrough in-addr.arpa ip6.arpa
}`

func newCluster(config *rest.Config, domain string) (*cluster, error) {
	domain = strings.ToLower(dns.Fqdn(domain))
	if _, valid := dns.IsDomainName(domain); !valid || domain == "." {
		return nil, fmt.Errorf("read cluster domain %q: it is not a domain name", domain)
	}
	input := caddyfile.NewDispenser("kubernetes", strings.NewReader(fmt.Sprintf(stanza, domain)))
	input.Next()
	k, err := kubernetes.ParseStanza(&caddy.Controller{Dispenser: input})
	if err != nil {
		return nil, fmt.Errorf("configure the view of the cluster: %w", err)
	}
	k.ClientConfig = fixedConfig{config: config}
	if _, _, err := k.InitKubeCache(context.Background()); err != nil { // its callbacks start and stop APIConn, as Run does
		return nil, fmt.Errorf("prepare to watch the cluster: %w", err)
	}
	return &cluster{Kubernetes: k, domain: domain}, nil
}

// below returns the labels of a name in front of the cluster's domain, in lower case; ok is false for the domain itself
// and for names elsewhere.
func (c *cluster) below(name string) (labels []string, ok bool) {
	front, ok := strings.CutSuffix(strings.ToLower(name), "."+c.domain)
	if !ok || front == "" {
		return nil, false
	}
	return strings.Split(front, "."), true
}

// service returns the service of a name, nil when there is none.
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

// fixedConfig gives CoreDNS, which reads kubeconfig files, a configuration that we have already.
type fixedConfig struct {
	kubeconfig // nil: of its methods, only the one below is called
	config     *rest.Config
}

type kubeconfig = clientcmd.ClientConfig

func (f fixedConfig) ClientConfig() (*rest.Config, error) {
	if f.config == nil {
		return nil, errors.New("configuration of the API client is missing")
	}
	config := rest.CopyConfig(f.config)
	config.UserAgent = "slipway-dns"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config, nil
}
