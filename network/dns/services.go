package dns

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/request"
)

// srvPriority and srvWeight are the priority and weight of all SRV records in the OpenShift 3 form.
// In the Kubernetes form, the weights in a response divide 100 equally among the records.
const srvPriority, srvWeight = 10, 10

// services serves SRV records for services in the OpenShift 3 form:
//
//	<service>.<namespace>.svc.<domain>
//	        each address, with the port 0
//	<host>.<service>.<namespace>.svc.<domain>
//	        one endpoint of a headless service, with the port 0
//	_<port>._<protocol>.<service>.<namespace>.svc.<domain>
//	        each address, with this port
//
// A record's target is a name below the service's name. Its first label is the host name of the
// address, or the hash of the address if it has no host name.
type services struct{ *cluster }

// IsNameError implements plugin.ServiceBackend.
func (s services) IsNameError(err error) bool { return endpoints(s).IsNameError(err) }

// Services implements plugin.ServiceBackend.
func (s services) Services(_ context.Context, state request.Request, _ bool, _ plugin.Options) ([]msg.Service, error) {
	labels, _ := s.labelsOf(state.Name())
	front, name, namespace := labels[:len(labels)-3], labels[len(labels)-3], labels[len(labels)-2]
	service := s.service(name, namespace)
	if service == nil {
		return nil, errNoEndpoint
	}
	f, ok := parseFilter(front)
	if !ok {
		return nil, errNoEndpoint
	}
	var records []msg.Service
	if service.Headless() {
		records = s.endpointRecords(service, f)
	} else {
		records = s.addressRecords(service, f)
	}
	if len(records) == 0 && len(front) > 0 {
		return nil, errNoEndpoint
	}
	return records, nil
}

// addressRecords returns the records for a service that has cluster IPs.
func (s services) addressRecords(service *object.Service, f filter) (records []msg.Service) {
	for _, ip := range service.ClusterIPs {
		if f.port == "" {
			records = append(records, s.record(service, ip, addressHash(ip), 0))
			continue
		}
		for _, port := range service.Ports {
			if f.matches(f.host, object.EndpointPort{Name: portName(port.Name, port.Port), Protocol: string(port.Protocol)}) {
				records = append(records, s.record(service, ip, addressHash(ip), int(port.Port)))
			}
		}
	}
	return records
}

// endpointRecords returns the records for a headless service.
func (s services) endpointRecords(service *object.Service, f filter) (records []msg.Service) {
	for _, slice := range s.APIConn.EpIndex(object.EndpointsKey(service.Name, service.Namespace)) {
		for _, subset := range slice.Subsets {
			for _, address := range subset.Addresses {
				host := address.Hostname
				if host == "" {
					host = addressHash(address.IP)
				}
				if f.port == "" {
					if f.host == "" || strings.EqualFold(f.host, host) || strings.EqualFold(f.host, hostLabel(address)) {
						records = append(records, s.record(service, address.IP, host, 0))
					}
					continue
				}
				for _, port := range subset.Ports {
					port.Name = portName(port.Name, port.Port)
					if f.matches(host, port) {
						records = append(records, s.record(service, address.IP, host, int(port.Port)))
					}
				}
			}
		}
	}
	return records
}

func (s services) record(service *object.Service, ip, host string, port int) msg.Service {
	return msg.Service{
		Host: ip, Port: port, Priority: srvPriority, Weight: srvWeight, TTL: s.MinTTL(request.Request{}),
		Key: msg.Path(host+"."+service.Name+"."+service.Namespace+".svc."+s.domain, "c"),
	}
}

// portName returns the name of a port, or its number if it has none.
func portName(name string, port int32) string {
	if name != "" {
		return name
	}
	return fmt.Sprint(port)
}

// addressHash returns the OpenShift 3 label for an address that has no host name.
func addressHash(ip string) string {
	hash := fnv.New32a()
	hash.Write([]byte(ip))
	return fmt.Sprintf("%x", hash.Sum32())
}
