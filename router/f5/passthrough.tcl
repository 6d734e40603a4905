# Sends TLS connections for the hosts of a data group to their pools without decrypting them. The
# server name is in the first message of the client, the ClientHello (RFC 8446, section 4.1.2).
when CLIENT_ACCEPTED {
    TCP::collect
}

when CLIENT_DATA {
    set size [TCP::payload length]
    if { $size < 5 } {
        TCP::collect
        return
    }
    set name ""
    binary scan [TCP::payload] cSS type version length
    if { ($type & 0xff) == 22 } {
        # The message can arrive in several packets.
        set end [expr {5 + ($length & 0xffff)}]
        if { $size < $end } {
            TCP::collect
            return
        }
        # The session ID, the cipher suites and the compression methods have variable lengths.
        set at 43
        binary scan [TCP::payload] @${at}c length
        incr at [expr {1 + ($length & 0xff)}]
        binary scan [TCP::payload] @${at}S length
        incr at [expr {2 + ($length & 0xffff)}]
        binary scan [TCP::payload] @${at}c length
        incr at [expr {1 + ($length & 0xff)}]
        # The extensions follow the length of all of them. Type 0 is the server name (RFC 6066).
        incr at 2
        while { $at + 4 < $end } {
            binary scan [TCP::payload] @${at}SS type length
            incr at 4
            if { $type == 0 } {
                binary scan [TCP::payload] @[expr {$at + 3}]S length
                binary scan [TCP::payload] @[expr {$at + 5}]a[expr {$length & 0xffff}] name
                break
            }
            incr at [expr {$length & 0xffff}]
        }
    }
    set name [string tolower $name]
    if { ![class match $name equals DATAGROUP] } {
        # A wildcard replaces the first label.
        set name "*[string range $name [string first . $name] end]"
    }
    if { [class match $name equals DATAGROUP] } {
        SSL::disable clientside
        SSL::disable serverside
        HTTP::disable
        pool [class match -value $name equals DATAGROUP]
    }
    TCP::release
}
