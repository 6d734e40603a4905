// Package routerpod creates the objects of a router that runs in pods, as OpenShift 3's `oc adm
// router` does: a deployment config, its service, service account, bindings and secrets.
package routerpod

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Request describes a router. AddFlags binds the unexported fields to flags.
type Request struct {
	// Name and Namespace identify the router.
	Name, Namespace string
	// OwnProject restricts the router to the routes of its project, so that it requires no
	// permissions in other projects.
	OwnProject bool

	kind, images, account, selector, labels, ports              string
	latest, hostNetwork, hostPorts                              bool
	replicas                                                    int32
	statsPort                                                   int
	statsUser, statsPassword                                    string
	defaultCertificate, clientAuthorities, clientRevoked        string
	subdomain, forceSubdomain                                   string
	extendedLogging, strictSNI, sharedHosts                     bool
	external                                                    map[string]*string // by variable
	externalPassword, externalKey, externalHosts                string
	ciphers, canonical, maximum                                 string
	clientAuthentication, clientFilter, threads, ignoredSecrets string
}

// AddFlags adds the flags of OpenShift 3.11's `oc adm router`, and --own-project.
func (r *Request) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&r.OwnProject, "own-project", false, "Serve only the routes of the current project, with permissions that the project's administrator can grant.")
	flags.StringVar(&r.kind, "type", haproxyRouter, "Kind of router: haproxy-router, or f5-router, which configures an F5 BIG-IP appliance.")
	flags.StringVar(&r.images, "images", defaultImages, "Image of the pods. ${component} is replaced with the kind of router, ${version} with the version.")
	flags.BoolVar(&r.latest, "latest-images", false, "Replace ${version} in --images with latest.")
	flags.StringVar(&r.account, "service-account", "router", "Service account of the pods.")
	flags.StringVar(&r.selector, "selector", "", "Labels of the nodes for the pods, as KEY=VALUE,KEY=VALUE.")
	flags.StringVar(&r.labels, "labels", "", "Labels of the objects and pods. The default is router=NAME.")
	flags.StringVar(&r.ports, "ports", "80:80,443:443", "Port for HTTP, port for HTTPS, and further ports, in this order. Each can be CONTAINER:HOST.")
	flags.BoolVar(&r.hostNetwork, "host-network", true, "Let the pods use their hosts' network.")
	flags.BoolVar(&r.hostPorts, "host-ports", true, "Without --host-network, map the pods' ports to ports of their hosts.")
	flags.Int32Var(&r.replicas, "replicas", 1, "Number of pods.")
	flags.IntVar(&r.statsPort, "stats-port", listenPort, "Port for statistics, metrics and health checks. 0: serve only health checks.")
	flags.StringVar(&r.statsUser, "stats-user", "admin", "User name for the statistics.")
	flags.StringVar(&r.statsPassword, "stats-password", "", "Password for the statistics. By default, the command generates one.")
	flags.StringVar(&r.defaultCertificate, "default-cert", "", "File with the certificate and key for routes without their own. The default is a certificate of the cluster.")
	flags.StringVar(&r.subdomain, "subdomain", "", "Host of routes that specify none, such as ${name}-${namespace}.apps.example.com.")
	flags.StringVar(&r.forceSubdomain, "force-subdomain", "", "Also replace the host of routes that specify one.")
	flags.BoolVar(&r.extendedLogging, "extended-logging", false, "Log requests, in a container named syslog.")
	flags.StringVar(&r.maximum, "max-connections", "", "Maximum number of concurrent connections.")
	flags.StringVar(&r.threads, "threads", "", "Number of HAProxy threads.")
	flags.StringVar(&r.ciphers, "ciphers", "", "Ciphers: modern, intermediate, old, or a list in the format of openssl ciphers.")
	flags.BoolVar(&r.strictSNI, "strict-sni", false, "Reject TLS for hosts without their own certificate.")
	flags.BoolVar(&r.sharedHosts, "disable-namespace-ownership-check", false, "Let several namespaces share a host.")
	flags.StringVar(&r.canonical, "router-canonical-hostname", "", "The router's host name in the routes' status.")
	flags.StringVar(&r.clientAuthentication, "mutual-tls-auth", "none", "Request certificates from clients: none, optional or required.")
	flags.StringVar(&r.clientAuthorities, "mutual-tls-auth-ca", "", "File with the certificate authorities to verify client certificates.")
	flags.StringVar(&r.clientRevoked, "mutual-tls-auth-crl", "", "File with the certificate revocation list for clients.")
	flags.StringVar(&r.clientFilter, "mutual-tls-auth-filter", "", "Regular expression that the subject of client certificates must match.")
	r.external = map[string]*string{}
	for _, flag := range []struct{ name, variable, use string }{
		{"external-host", "HOSTNAME", "Host"}, {"external-host-username", "USERNAME", "User"}, {"external-host-http-vserver", "HTTP_VSERVER", "Virtual server for HTTP"},
		{"external-host-https-vserver", "HTTPS_VSERVER", "Virtual server for HTTPS"}, {"external-host-partition-path", "PARTITION_PATH", "Partition"},
		{"external-host-internal-ip", "INTERNAL_ADDRESS", "Address of the internal interface, for native integration,"}, {"external-host-vxlan-gw", "VXLAN_GW_CIDR", "Address in its HostSubnet, with the prefix length of the pod network,"},
	} {
		r.external["ROUTER_EXTERNAL_HOST_"+flag.variable] = flags.String(flag.name, "", flag.use+" of the F5 BIG-IP appliance.")
	}
	r.external["ROUTER_EXTERNAL_HOST_INSECURE"] = new(string)
	flags.BoolFunc("external-host-insecure", "Do not check the certificate and the SSH key of the appliance.", func(value string) error {
		*r.external["ROUTER_EXTERNAL_HOST_INSECURE"] = value
		return nil
	})
	flags.StringVar(&r.externalPassword, "external-host-password", "", "Password of the user on the F5 BIG-IP appliance.")
	flags.StringVar(&r.externalKey, "external-host-private-key", "", "File with the SSH key for uploading certificates to the appliance. By default, the REST API uploads them.")
	flags.StringVar(&r.externalHosts, "external-host-known-hosts", "", "File with the SSH key of the appliance, in the format of ssh-keyscan.")
	flags.StringVar(&r.ignoredSecrets, "credentials", "", "Ignored. Accepted for compatibility with OpenShift 3.")
	// MarkDeprecated cannot fail because the flag exists.
	_ = flags.MarkDeprecated("credentials", "it has no effect: the pods use their service account")
}

const (
	// haproxyRouter and f5Router are the router types.
	haproxyRouter, f5Router = "haproxy-router", "f5-router"
	// defaultImages is the router's default image. Every node provides it.
	defaultImages = "localhost/slipway-router:current"
	// listenPort is the default port for health checks, metrics and statistics.
	listenPort = 1936
)

// port is a container port and the host port that forwards to it.
type port struct{ container, host int32 }

// plan is a validated request.
type plan struct {
	*Request
	ports                []port
	labels, nodes        map[string]string
	certificate, key     []byte
	authorities, revoked []byte
	sshKey, sshHosts     []byte
}

// read validates the flags and returns the plan. Its error lists all invalid flags.
func (r *Request) read() (*plan, error) {
	p := &plan{Request: r}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if messages := validation.IsDNS1123Label(r.Name); len(messages) > 0 || len(r.Name) > 40 {
		problem("parse name %q: must be at most 40 lower-case letters, digits and dashes", r.Name)
	}
	if r.kind != haproxyRouter && r.kind != f5Router {
		problem("parse --type %q: must be haproxy-router or f5-router", r.kind)
	}
	if r.kind == f5Router && (*r.external["ROUTER_EXTERNAL_HOST_HOSTNAME"] == "" || *r.external["ROUTER_EXTERNAL_HOST_USERNAME"] == "" || r.externalPassword == "") {
		problem("--type=f5-router needs --external-host, --external-host-username and --external-host-password")
	}
	if !slices.Contains([]string{"none", "optional", "required"}, r.clientAuthentication) {
		problem("parse --mutual-tls-auth %q: must be none, optional or required", r.clientAuthentication)
	}
	if r.clientAuthentication != "none" && r.clientAuthorities == "" {
		problem("--mutual-tls-auth needs the certificate authorities of clients; set --mutual-tls-auth-ca")
	}
	if net.ParseIP(r.canonical) != nil {
		problem("canonical hostname must not be an IP address: %s", r.canonical)
	} else if r.canonical != "" && len(validation.IsDNS1123Subdomain(r.canonical)) > 0 {
		problem("invalid canonical hostname: %s", r.canonical)
	}
	if r.replicas < 0 {
		problem("parse --replicas %d: must not be negative", r.replicas)
	}
	if r.statsPort < 0 || r.statsPort > 65535 {
		problem("parse --stats-port %d: must be a port number", r.statsPort)
	}
	var err error
	if p.ports, err = r.readPorts(); err != nil {
		problems = append(problems, err)
	}
	for _, set := range []struct {
		flag, text string
		into       *map[string]string
	}{{"labels", r.labels, &p.labels}, {"selector", r.selector, &p.nodes}} {
		if *set.into, err = labels.ConvertSelectorToLabelsMap(set.text); err != nil {
			problem("parse --%s: %w", set.flag, err)
		}
	}
	if len(p.labels) == 0 {
		p.labels = map[string]string{"router": r.Name}
	}
	for _, file := range []struct {
		flag, path string
		into       *[]byte
	}{
		{"default-cert", r.defaultCertificate, &p.certificate}, {"mutual-tls-auth-ca", r.clientAuthorities, &p.authorities},
		{"mutual-tls-auth-crl", r.clientRevoked, &p.revoked},
		{"external-host-private-key", r.externalKey, &p.sshKey}, {"external-host-known-hosts", r.externalHosts, &p.sshHosts},
	} {
		if file.path == "" {
			continue
		}
		if *file.into, err = os.ReadFile(file.path); err != nil {
			problem("read --%s: %w", file.flag, err)
		}
	}
	if p.certificate != nil {
		if p.certificate, p.key, err = splitPair(p.certificate); err != nil {
			problem("read --default-cert %q: %w", r.defaultCertificate, err)
		}
	}
	if r.statsPassword == "" {
		r.statsPassword = rand.Text()
	}
	if r.kind == f5Router { // an f5-router does not listen on the ports
		p.ports, r.hostNetwork, r.hostPorts = nil, false, false
	}
	return p, errors.Join(problems...)
}

// readPorts parses --ports: the HTTP port, the HTTPS port, then any additional ports.
func (r *Request) readPorts() (ports []port, err error) {
	inUse := map[int32]bool{int32(r.statsPort): true}
	for text := range strings.SplitSeq(r.ports, ",") {
		inside, outside, two := strings.Cut(strings.TrimSpace(text), ":")
		if !two {
			outside = inside
		}
		container, err := strconv.ParseUint(inside, 10, 16)
		host, hostErr := strconv.ParseUint(outside, 10, 16)
		switch {
		case err != nil || hostErr != nil || container == 0 || host == 0:
			return nil, fmt.Errorf("parse --ports %q: %q is neither PORT nor CONTAINER:HOST", r.ports, text)
		case r.hostNetwork && container != host:
			return nil, fmt.Errorf("parse --ports %q: with --host-network, container port %d and host port %d must be equal", r.ports, container, host)
		case inUse[int32(container)]:
			return nil, fmt.Errorf("parse --ports %q: port %d appears twice, or is the port of --stats-port", r.ports, container)
		}
		inUse[int32(container)] = true
		ports = append(ports, port{int32(container), int32(host)})
	}
	if len(ports) < 2 {
		return nil, fmt.Errorf("parse --ports %q: must be a port for HTTP and one for HTTPS, such as 8080:8080,8443:8443", r.ports)
	}
	return ports, nil
}

// tlsPorts returns the two ports that HAProxy uses to forward TLS connections to itself: 10444 and
// 10443. On the host network, routers on the same host need different ports. Therefore, if the
// HTTPS port is not 443, tlsPorts returns the next two free ports after the HTTPS port.
func (p *plan) tlsPorts() (sni, noSNI int32) {
	https := p.ports[1].container
	if !p.hostNetwork || https == 443 {
		return 10444, 10443
	}
	inUse := map[int32]bool{int32(p.statsPort): true, listenPort: true}
	for _, port := range p.ports {
		inUse[port.container] = true
	}
	var free []int32
	for number := https + 1; len(free) < 2; number++ {
		if number > 65535 {
			number = 10001
		}
		if !inUse[number] {
			free = append(free, number)
		}
	}
	return free[0], free[1]
}

// splitPair splits a PEM file into its certificates and its other blocks, which contain the private
// key.
func splitPair(content []byte) (certificates, key []byte, err error) {
	if _, err := tls.X509KeyPair(content, content); err != nil {
		return nil, nil, fmt.Errorf("the default cert must contain a private key and its certificate in PEM: %w", err)
	}
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return certificates, key, nil
		}
		if block.Type == "CERTIFICATE" {
			certificates = append(certificates, pem.EncodeToMemory(block)...)
			continue
		}
		key = append(key, pem.EncodeToMemory(block)...)
	}
}
