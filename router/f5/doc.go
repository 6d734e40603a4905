// Package f5 configures an F5 BIG-IP appliance, which serves routes instead of HAProxy: pools of
// endpoints, rules of two policies, certificates with their profiles, and a data group for
// passthrough routes. With native integration, it also configures the VXLAN tunnel between the
// appliance and the nodes.
//
// Source: OpenShift Container Platform 3.9 Architecture, section "F5 BIG-IP Router plugin". Names
// of objects on the appliance are those of OpenShift 3.11. The REST API is F5's iControl REST; the
// attributes of its objects are those of the TMSH reference.
package f5
