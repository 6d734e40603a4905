package platform

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// EncryptionFile is the key of the file with the keys that encrypt secrets, in SharedFiles.
const EncryptionFile = "pki.encryption.yaml"

// SharedFiles returns the files that commands change on all masters: passwords, and the keys that
// encrypt secrets. A file outside of the data directory belongs to the administrator.
func (h *Host) SharedFiles(client kubernetes.Interface) *masters.SharedFiles {
	files := map[string]masters.SharedFile{EncryptionFile: {
		Path:  pki.EncryptionFile(h.PKIDir()),
		Write: func(content []byte) error { return pki.ReplaceEncryption(h.PKIDir(), content) },
	}}
	for _, file := range h.HTPasswdFiles() {
		if relative, err := filepath.Rel(h.DataDir, file); err == nil && filepath.IsLocal(relative) {
			files[strings.ReplaceAll(relative, "/", ".")] = masters.SharedFile{Path: file}
		}
	}
	return &masters.SharedFiles{
		Client: client, Files: files, Record: h.path("master", "shared-files.json"),
		Seal: func(content []byte) ([]byte, error) { return pki.Seal(h.PKIDir(), content) },
		Open: func(sealed []byte) ([]byte, error) { return pki.Open(h.PKIDir(), sealed) },
	}
}

// sharedFilesComponent returns the component that writes files that other masters have changed.
func (h *Host) sharedFilesComponent() (component.Component, error) {
	if h.cluster == nil {
		return component.Disabled("shared-files"), nil
	}
	return h.SharedFiles(h.deps.Kube), nil
}

// requestTimeout limits a request for the API servers.
const requestTimeout = 2 * time.Second

// APIServers returns the host:port addresses of the API servers that are registered.
func APIServers(ctx context.Context, client kubernetes.Interface, options metav1.GetOptions) (addresses []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	slice, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", options)
	if err != nil {
		return nil, fmt.Errorf("list API servers: %w", err)
	}
	for _, port := range slice.Ports {
		if port.Name == nil || *port.Name != "https" {
			continue // that of the DNS server
		}
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port))))
		}
	}
	return addresses, nil
}

// Connections returns a connection like config to each API server.
func Connections(ctx context.Context, config *rest.Config) (servers []*rest.Config, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	addresses, err := APIServers(ctx, client, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		server := rest.CopyConfig(config)
		server.Host = "https://" + address
		servers = append(servers, server)
	}
	return servers, nil
}

// countMasters returns the number of masters that serve the API, at least 1.
func (h *Host) countMasters() int {
	if h.cluster == nil {
		return 1
	}
	// From the cache: a login need not wait for etcd.
	addresses, err := APIServers(context.Background(), h.deps.Kube, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return 1
	}
	return max(len(addresses), 1)
}
