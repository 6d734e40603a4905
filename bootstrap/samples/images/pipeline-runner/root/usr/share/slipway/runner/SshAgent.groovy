package pipeline

/**
 * An ssh-agent process in an agent's container. It keeps private keys in memory while a block runs.
 */
class SshAgent {
    /**
     * Adds the key in the input. ssh-add runs a program to read the passphrase. The program
     * responds only once: after a wrong passphrase, ssh-add runs the program again, and gives up
     * after an empty response.
     */
    private static final String ADD = '''umask 077; d=$(mktemp -d) && printf %s "$SLIPWAY_PASSPHRASE" >"$d/word" &&
        printf '#!/bin/sh\\ncat "%s" 2>/dev/null && rm -f "%s"\\n' "$d/word" "$d/word" >"$d/ask" && chmod 700 "$d/ask" &&
        SSH_ASKPASS="$d/ask" SSH_ASKPASS_REQUIRE=force ssh-add -q -; c=$?; rm -rf "$d"; exit $c'''
    private final Agent place
    /** The variables with which programs connect to the process. */
    final Map<String, String> variables

    private SshAgent(Agent place, Map<String, String> variables) {
        this.place = place
        this.variables = variables
    }

    /** Returns the secret for the credentials. The secret contains a private key. */
    static Map<String, String> secretOf(Run run, String id) {
        Map<String, String> secret = run.steps.secret(id)
        if (!secret['ssh-privatekey']) throw new Failure("the secret of the credentials \"$id\" has no key \"ssh-privatekey\"")
        secret
    }

    static SshAgent start(Agent place) {
        Map<String, String> names
        String text
        try {
            names = place.nameUser()
            text = place.output(['ssh-agent', '-s'])
        } catch (Failure e) {
            throw new Failure("start ssh-agent in the container of ${place.name}: $e.message", e.result)
        }
        new SshAgent(place, names + (text =~ /(SSH_\w+)=([^;]+);/).collect { [it[1], it[2]] }.collectEntries())
    }

    /** Adds a secret's key ssh-privatekey, with its passphrase if there is one. */
    void add(Map<String, String> secret) {
        String key = secret['ssh-privatekey'].replace('\r\n', '\n').trim() + '\n'
        Map<String, String> env = Frame.current().env + variables + [SLIPWAY_PASSPHRASE: secret.passphrase ?: '']
        try {
            Frame.current().child('', [env: env]).run { place.output(['sh', '-c', ADD], key.getBytes('UTF-8')) }
        } catch (Failure e) {
            if (e.result == 'ABORTED') throw e
            throw new Failure("the private key is not valid, or its passphrase is wrong")
        }
    }

    void stop() { place.beside { place.output(['sh', '-c', 'kill "$0" 2>/dev/null || true', variables.SSH_AGENT_PID]) } }
}
