package f5

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/slipway-platform/slipway/router/environment"
)

// prefix is the prefix of the environment variables that describe the appliance.
const prefix = "ROUTER_EXTERNAL_HOST_"

// Config describes the appliance.
type Config struct {
	// Address is the host of the management interface. It includes the port if the port is not 443.
	Address        string
	User, Password string
	// Insecure disables the verification of the appliance's certificate and SSH host key.
	Insecure bool
	// Partition is the path to the folder that contains the router's objects, such as /Common.
	Partition string
	// HTTP and HTTPS are the full paths to the virtual servers, such as /Common/ose-vserver.
	HTTP, HTTPS string
	// Internal is the appliance's address in the VXLAN tunnel. Gateway is the appliance's address
	// in the pod network, with the network's prefix length. Both are invalid without native
	// integration.
	Internal netip.Addr
	Gateway  netip.Prefix

	ssh        *ssh.ClientConfig // to upload files; nil to upload them through the REST API
	sshAddress string            // host:port
}

// Native reports whether the router configures a VXLAN tunnel.
func (c *Config) Native() bool { return c.Internal.IsValid() }

// folderPattern matches a folder path. namePattern matches an object name on the appliance.
var (
	folderPattern = regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$`)
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// Read returns the appliance configuration that a router's environment variables specify. The error
// reports all problems. It does not contain the password.
func Read(s environment.Settings) (*Config, error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	text := func(name string) string { return s.Text(prefix + name) }

	c := &Config{
		Address: text("HOSTNAME"), User: text("USERNAME"), Password: text("PASSWORD"), Insecure: s.On(prefix + "INSECURE"),
		Partition: "/" + strings.Trim(text("PARTITION_PATH"), "/"),
	}
	for _, name := range []string{"HOSTNAME", "USERNAME", "PASSWORD"} {
		if text(name) == "" {
			problem("set %s%s: a router of type f5-router needs it", prefix, name)
		}
	}
	if strings.ContainsAny(c.Address, "/@? ") {
		problem("set %sHOSTNAME to %q: it must be a host, or a host and a port such as f5.example.com:8443", prefix, c.Address)
	}
	if !folderPattern.MatchString(c.Partition) {
		problem("set %sPARTITION_PATH to %q: it must be a path such as /Common or /Common/openshift", prefix, text("PARTITION_PATH"))
	}
	var err error
	if c.HTTP, err = c.virtualServer("HTTP_VSERVER", text("HTTP_VSERVER")); err != nil {
		problems = append(problems, err)
	}
	if c.HTTPS, err = c.virtualServer("HTTPS_VSERVER", text("HTTPS_VSERVER")); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, c.readTunnel(text("INTERNAL_ADDRESS"), text("VXLAN_GW_CIDR")))
	if path := text("PRIVKEY"); path != "" {
		c.ssh, err = readSSH(path, text("KNOWN_HOSTS"), c.User, c.Insecure)
		problems = append(problems, err)
		c.sshAddress = net.JoinHostPort(c.host(), "22")
	}
	return c, errors.Join(problems...)
}

// virtualServer returns a virtual server's full path. A name without a folder refers to the
// router's partition.
func (c *Config) virtualServer(variable, name string) (string, error) {
	switch {
	case folderPattern.MatchString(name) && strings.Count(name, "/") > 1:
		return name, nil
	case namePattern.MatchString(name):
		return c.Partition + "/" + name, nil
	}
	return "", fmt.Errorf("set %s%s to %q: it must be the name of a virtual server, or its path such as /Common/ose-vserver", prefix, variable, name)
}

// readTunnel reads the addresses for native integration.
func (c *Config) readTunnel(internal, gateway string) (err error) {
	if internal == "" && gateway == "" {
		return nil
	}
	if internal == "" || gateway == "" {
		return fmt.Errorf("set %[1]sINTERNAL_ADDRESS and %[1]sVXLAN_GW_CIDR: native integration needs both, a ramp node neither", prefix)
	}
	if c.Internal, err = netip.ParseAddr(internal); err != nil || !c.Internal.Is4() {
		return fmt.Errorf("set %sINTERNAL_ADDRESS to %q: it must be an IPv4 address of the appliance", prefix, internal)
	}
	if c.Gateway, err = netip.ParsePrefix(gateway); err != nil || !c.Gateway.Addr().Is4() || c.Gateway == c.Gateway.Masked() {
		return fmt.Errorf("set %sVXLAN_GW_CIDR to %q: it must be an address of the appliance's HostSubnet, with the prefix length of the pod network, such as 10.131.0.1/14", prefix, gateway)
	}
	return nil
}

// readSSH returns an SSH client configuration that uses a private key.
func readSSH(path, knownHosts, user string, insecure bool) (*ssh.ClientConfig, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %sPRIVKEY: %w", prefix, err)
	}
	key, err := ssh.ParsePrivateKey(content)
	if err != nil {
		return nil, fmt.Errorf("parse %sPRIVKEY %q: %w", prefix, path, err)
	}
	config := &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, Timeout: requestTimeout}
	switch {
	case knownHosts != "":
		if config.HostKeyCallback, err = knownhosts.New(knownHosts); err != nil {
			return nil, fmt.Errorf("read %sKNOWN_HOSTS: %w", prefix, err)
		}
	case insecure:
		config.HostKeyCallback = ssh.InsecureIgnoreHostKey()
	default:
		return nil, fmt.Errorf("set %[1]sKNOWN_HOSTS to a file with the appliance's SSH key, as ssh-keyscan prints it, or omit %[1]sPRIVKEY: without it, the router uploads certificates through the REST API", prefix)
	}
	return config, nil
}

// host returns the appliance's host without the REST API port.
func (c *Config) host() string {
	if host, _, err := net.SplitHostPort(c.Address); err == nil {
		return host
	}
	return strings.Trim(c.Address, "[]")
}
