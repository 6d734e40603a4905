// Package f5 configures an F5 BIG-IP appliance, which serves routes instead of HAProxy. It manages
// endpoint pools, the rules of two policies, certificates and their profiles, and a data group for
// passthrough routes. With native integration, it also configures the VXLAN tunnel between the
// appliance and the nodes.
//
// Source: OpenShift Container Platform 3.9 Architecture, section "F5 BIG-IP Router plugin". Object
// names on the appliance are the same as in OpenShift 3.11. The REST API is F5's iControl REST. The
// TMSH reference describes the attributes of its objects.
package f5
