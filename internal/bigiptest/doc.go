// Package bigiptest simulates an F5 BIG-IP appliance for tests. It implements the part of the
// iControl REST API that routers use, with the appliance's checks. It also implements SSH for
// uploads, and virtual servers that forward requests as configured.
//
// Source: F5's iControl REST User Guide and TMSH reference. The simulation has not been compared
// with a real appliance.
package bigiptest
