package config

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
)

// etcdPort returns the port on which etcd serves clients if etcdConfig.address is not set. It is
// the port of the first URL in etcdClientInfo.urls, which lists etcd's addresses in OpenShift 3. If
// there are no URLs, it is the port that etcd uses on an all-in-one OpenShift 3 host.
func (c *MasterConfig) etcdPort() string {
	const usual = "4001"
	if len(c.EtcdClientInfo.URLs) == 0 {
		return usual
	}
	u, err := url.Parse(c.EtcdClientInfo.URLs[0])
	if err != nil || u.Port() == "" {
		return usual // validate reports the invalid URL
	}
	return u.Port()
}

// EtcdEndpoint returns the URL of this host's etcd member for clients on the same host. If there
// are several masters, each of them also serves etcd on the loopback address.
func (c *MasterConfig) EtcdEndpoint(severalMasters bool) string {
	host, port, err := net.SplitHostPort(c.EtcdAddress())
	if err != nil {
		return "https://" + c.EtcdAddress()
	}
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsUnspecified() || severalMasters {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, port)
}

// etcdClient validates etcdClientInfo. Each master runs and uses its own etcd member, with
// certificates that Slipway issues, so the block must not specify anything else.
func (c *checker) etcdClient(config *Config) {
	info := config.Master.EtcdClientInfo
	for i, text := range info.URLs {
		key := indexed("etcdClientInfo.urls", i)
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			c.fail(key, "is %q, must be a URL such as https://127.0.0.1:4001", text)
			continue
		}
		if !config.isOwnName(u.Hostname()) {
			c.fail(key, "is %q, but each master runs its own etcd member, and external etcd is not supported; "+
				"remove the line, and add other masters with `slipway up --join`", text)
			continue
		}
		if _, port, err := net.SplitHostPort(config.Master.EtcdConfig.Address); err == nil && port != u.Port() {
			c.fail(key, "is %q, but etcdConfig.address has the port %s; use the same port, or remove etcdConfig.address", text, port)
		}
	}
	for _, file := range []struct{ key, path, name string }{
		{"etcdClientInfo.ca", info.CA, "master.etcd-ca.crt"},
		{"etcdClientInfo.certFile", info.CertFile, "master.etcd-client.crt"},
		{"etcdClientInfo.keyFile", info.KeyFile, "master.etcd-client.key"},
	} {
		if file.path != "" && filepath.Base(file.path) != file.name {
			c.fail(file.key, "is %q, but etcd uses the certificates and keys that Slipway issues, here %s; remove the key", file.path, file.name)
		}
	}
}

// isOwnName reports whether the configuration assigns a name or address to this host.
func (c *Config) isOwnName(name string) bool {
	if ip, err := netip.ParseAddr(name); name == "localhost" || err == nil && ip.IsLoopback() {
		return true
	}
	public, err := url.Parse(c.Master.MasterPublicURL)
	if err == nil && name == public.Hostname() {
		return true
	}
	etcd, _, err := net.SplitHostPort(c.Master.EtcdConfig.Address)
	if err == nil && name == etcd {
		return true
	}
	return name == c.Node.NodeName || name == c.Node.NodeIP || name == c.Master.KubernetesMasterConfig.MasterIP || nodeNameOf(name) == hostName()
}
