// One table for everybody who chooses: endpoints, rule, and the percent of new connections that each should get. The client is in
// cluster east, zone a, region eu. North is in the same zone, west in zone b of that region, south in zone c of region us.
//
// Endpoints: `west 2`, two of west; `east@b 1`, in another zone than its cluster; `-unready`; `-draining`; `-dead`, called ready
// and refusing; `-port`, without the port that is asked for; `-other`, with another number behind the port.
// Rule: `east=95 west=5 > south`, weights and then fallbacks, with `+` between clusters of one group; `!west`, excluded;
// `near`, nearest first; `min 2` or `min 50%`, spillover; `lower west 20`, an exporter's wish; `shift east west 25`;
// `counted east 1`, as many as count after a loss.
// Wanted: percent by endpoints, each of those alike. Names without an address do not know the dead: what they lead to is behind `names`.
// Behind `xds` is what Envoy and gRPC do otherwise: they know no fallback of one weighted group (0280).

export const choiceCases = `
one endpoint                                   | east 1                                | | east 100
two clusters alike                             | east 1, west 1                        | | east 50, west 50
by endpoints                                   | east 2, west 1                        | | east 66.7, west 33.3
three clusters by endpoints                    | east 1, west 2, south 1               | | east 25, west 50, south 25
four clusters alike                            | east 1, north 1, west 1, south 1      | | east 25, north 25, west 25, south 25
none of its own                                | west 3                                | | west 100
none of its own, two others                    | west 3, south 1                       | | west 75, south 25
many here, one there                           | east 9, west 1                        | | east 90, west 10
own zones alike                                | east 1, east@b 1                      | | east 50, east@b 50
zones of another cluster alike                 | west 1, west@a 3                      | | west 25, west@a 75
ten in four clusters                           | east 3, north 2, west 4, south 1      | | east 30, north 20, west 40, south 10
its own is not ready                           | east-unready 1, west 1                | | west 100
one of two is not ready                        | east 1, east-unready 1, west 1        | | east 50, west 50
all of two clusters not ready                  | east-unready 2, west-unready 1, south 2 | | south 100
a drained cluster                              | east 1, west-draining 2               | | east 100
a drained own cluster                          | east-draining 2, west 1, south 1      | | west 50, south 50
a part is drained                              | east 1, west 1, west-draining 3       | | east 50, west 50

near: own zone                                 | east 1, east@b 3, north 2, west 2     | near | east 100
near: own cluster                              | east@b 1, north 3, west 3             | near | east@b 100
near: own zone of another cluster              | north 1, west 4, south 4              | near | north 100
near: own region                               | west 2, south 5                       | near | west 100
near: anywhere                                 | south 2                               | near | south 100
near: an endpoint's zone counts                | west 3, west@a 1, south 1             | near | west@a 100
near: two clusters of one tier                 | north 1, west@a 1, south 4            | near | north 50, west@a 50
near: own zone not ready                       | east-unready 2, east@b 1, north 3     | near | east@b 100
near: own cluster not ready                    | east-unready 2, north 1, west 3       | near | north 100
near: own region not ready                     | west-unready 2, south 3               | near | south 100
near: own cluster drained                      | east-draining 2, west 1, south 4      | near | west 100
near: nobody nearer, one ready of many         | north-unready 3, north 1, west 9      | near | north 100

weights: half                                  | east 1, west 1                        | east=50 west=50 | east 50, west 50
weights: a canary of 5                         | east 1, west 1                        | east=95 west=5 | east 95, west 5
weights: a canary of 1                         | east 1, west 1                        | east=99 west=1 | east 99, west 1
weights: a canary with more endpoints          | east 1, west 4                        | east=95 west=5 | east 95, west 5
weights: fewer endpoints get more              | east 4, west 1                        | east=10 west=90 | east 10, west 90
weights: a third                               | east 2, west 3                        | east=33 west=67 | east 33, west 67
weights: three groups                          | east 1, west 1, south 1               | east=80 west=15 south=5 | east 80, west 15, south 5
weights: three groups, other endpoints         | east 1, west 3, south 2               | east=34 west=33 south=33 | east 34, west 33, south 33
weights: four groups                           | east 1, north 2, west 1, south 2      | east=40 north=30 west=20 south=10 | east 40, north 30, west 20, south 10
weights: two clusters share a group            | east 1, north 3, west 1               | east+north=80 west=20 | east 20, north 60, west 20
weights: a cluster belongs to the first group  | east 1, west 1                        | east=70 east+west=30 | east 70, west 30
weights: over both zones of a cluster          | east 1, east@b 1, west 1              | east=60 west=40 | east 30, east@b 30, west 40
weights: one of a group is not ready           | east 1, east-unready 1, west 1        | east=60 west=40 | east 60, west 40
weights: a canary that is not ready            | east 1, west-unready 1                | east=95 west=5 | east 100
weights: the old one is not ready              | east-unready 2, west 1                | east=95 west=5 | west 100
weights: one of three is gone                  | east 1, west 1                        | east=60 west=20 south=20 | east 75, west 25
weights: two of three are gone                 | south 2                               | east=60 west=20 south=20 | south 100
weights: the old one is drained                | east-draining 2, west 1               | east=95 west=5 | west 100
weights: 100 for one                           | east 1, west 5                        | east=100 | east 100
weights: 100 for one that is gone              | west 5, south 5                       | east=100 | west 50, south 50
weights: a stranger gets nothing               | east 1, west 1, south 5               | east=95 west=5 | east 95, west 5

rest: 5 to a new one                           | east 1, west 1                        | west=5 | east 95, west 5
rest: by endpoints                             | east 1, west 1, south 3               | west=20 | east 20, west 20, south 60
rest: nobody has it                            | west 1                                | west=5 | west 100
rest: two weights and nobody                   | east 1, west 1                        | east=50 west=30 | east 62.5, west 37.5
rest: two weights and one more                 | east 1, west 1, south 2               | east=50 west=30 | east 50, west 30, south 20
rest: two weights and two more                 | east 1, west 1, south 2, north 2      | east=50 west=30 | east 50, west 30, south 10, north 10
rest: the new one is not ready                 | east 1, west-unready 1, south 1       | west=20 | east 50, south 50
rest: before a fallback                        | west 1, south 1, north 1              | west=5 > south | west 5, north 95
rest: the nearest have it                      | east 1, west 1, south 3               | west=20 near | east 80, west 20

order: the first                               | east 1, west 5                        | > east > west | east 100
order: the farther one first                   | east 3, south 1                       | > south > east | south 100
order: the first is gone                       | west 3, south 1                       | > east > west+south | west 75, south 25
order: the first is not ready                  | east-unready 3, west 1, south 4       | > east > west > south | west 100
order: the second is gone too                  | south 4                               | > east > west > south | south 100
order: two first                               | east 1, north 1, west 3               | > east+north > west | east 50, north 50
order: nobody that it names                    | south 1, north 1                      | > east > west | south 50, north 50
order: a stranger comes last                   | west 1, south 8                       | > west | west 100
order: the nearest of the first                | east 1, west 1, south 1               | > south+west > east near | west 100
order: the first is drained                    | east-draining 1, west 1               | > east > west | west 100

fallback: not needed                           | east 1, west 1, south 1               | east=95 west=5 > south | east 95, west 5
fallback: for the old one                      | west 1, south 1                       | east=95 west=5 > south | west 5, south 95
fallback: for the new one                      | east 1, south 1                       | east=95 west=5 > south | east 95, south 5
fallback: for both                             | south 2                               | east=95 west=5 > south | south 100
fallback: gone, the old one too                | west 1                                | east=95 west=5 > south | west 100
fallback: gone, a stranger helps               | west 1, north 1                       | east=95 west=5 > south | west 5, north 95
fallback: the first of two                     | west 1, south 1, north 1              | east=70 west=30 > south > north | west 30, south 70
fallback: the second of two                    | west 1, north 1                       | east=70 west=30 > south > north | west 30, north 70
fallback: two clusters in one                  | west 1, south 1, north 3              | east=60 west=40 > south+north | west 40, south 15, north 45
fallback: not ready                            | west 1, south-unready 1               | east=60 west=40 > south | west 100
fallback: the nearest of two                   | west 1, south 1, north 3              | east=60 west=40 > south+north near | west 40, north 60
fallback: for a drained one                    | east-draining 1, west 1, south 2      | east=80 west=20 > south | west 20, south 80
fallback: has the rest of a sum below 100      | west 1, south 1                       | west=5 > south | west 5, south 95

never: a cluster                               | east 1, west 3                        | !west | east 100
never: its own                                 | east 3, west 1                        | !east | west 100
never: two of four                             | east 1, north 1, west 1, south 1      | !north !west | east 50, south 50
never: one with a weight                       | east 1, west 1, south 1               | east=50 west=30 south=20 !west | east 71.4, south 28.6
never: one with a weight, and a fallback       | east 1, west 1, south 1               | east=70 west=30 > south !west | east 70, south 30
never: the first                               | east 1, west 1, south 1               | > east > west !east | west 100
never: the nearest                             | east 2, north 1, west 1               | near !east | north 100
never: one that is not there                   | east 1, west 1                        | !south | east 50, west 50

zero: nothing while others are ready           | east 1, west 1                        | west=0 | east 100
zero: nobody else                              | west 2                                | west=0 | west 100
zero: beside weights                           | east 1, west 1, south 1               | east=60 west=0 south=40 | east 60, south 40
zero: others are gone                          | west 1                                | east=60 west=0 south=40 | west 100
zero: after a fallback                         | west 1, north 1                       | east=100 west=0 > north | north 100

least: enough                                  | east 3, west 1                        | > east > west min 3 | east 100
least: three of four                           | east 3, west 8                        | > east > west min 4 | east 75, west 25
least: one of four                             | east 1, west 8                        | > east > west min 4 | east 25, west 75
least: half of 80 %                            | east 2, east-unready 2, west 8        | > east > west min 80% | east 62.5, west 37.5
least: just enough by percent                  | east 2, east-unready 2, west 8        | > east > west min 50% | east 100
least: drained ones are missing                | east 1, east-draining 3, west 2       | > east > west min 50% | east 50, west 50
least: too few everywhere                      | east 1, west 1                        | > east > west min 2 | east 66.7, west 33.3
least: two spill over one after the other      | east 1, west 1, south 4               | > east > west > south min 2 | east 50, west 25, south 25
least: the nearer tier                         | east 1, west 4                        | near min 2 | east 50, west 50
least: two tiers                               | east 1, north 1, south 4              | near min 2 | east 50, north 25, south 25
least: weights with a fallback                 | east 1, west 2, south 2               | east=80 west=20 > south min 2 | east 40, west 20, south 40
least: weights alone                           | east 1, west 2                        | east=80 west=20 min 2 | east 66.7, west 33.3
least: ready again for a moment only           | east 4, west 8                        | > east > west min 4 counted east 2 | east 50, west 50
least: more count than are ready               | east 3, west 8                        | > east > west min 4 counted east 9 | east 75, west 25

wish: a fifth                                  | east 1, west 1                        | lower west 25 | east 80, west 20
wish: half, with more endpoints                | east 1, west 2                        | lower west 50 | east 50, west 50
wish: both want half                           | east 1, west 1, south 1               | lower east 50 lower west 50 | east 25, west 25, south 50
wish: all want half                            | east 1, west 1                        | lower east 50 lower west 50 | east 50, west 50
wish: nobody else                              | east 1                                | lower east 20 | east 100
wish: the next tier takes over                 | east 1, west 1                        | near lower east 20 | east 20, west 80
wish: inside a weighted group                  | east 1, north 1, west 1               | east+north=80 west=20 lower east 25 | east 16, north 64, west 20
wish: below its weight                         | east 1, west 1, south 1               | east=80 west=20 > south lower east 50 | east 40, west 20, south 40

shift: a quarter                               | east 1, west 1                        | > east > west shift east west 25 | east 75, west 25
shift: five                                    | east 2, west 1                        | > east > west shift east west 5 | east 95, west 5
shift: all                                     | east 3, west 1                        | > east > west shift east west 100 | west 100
shift: over weights                            | east 3, west 1                        | east=95 west=5 shift east west 20 | east 76, west 24
shift: over endpoints                          | east 1, west 1, south 2               | shift east west 60 | east 10, west 40, south 50
shift: to a farther tier                       | east 2, south 1                       | near shift east south 10 | east 90, south 10
shift: it only counts                          | east 3, west 1                        | shift east west 0 | east 75, west 25
shift: to nobody                               | east 1, west-unready 1, south 1       | shift east west 50 | east 50, south 50
shift: to an excluded one                      | east 1, west 1, south 1               | !west shift east west 50 | east 50, south 50
shift: from nobody                             | west 1, south 1                       | shift east west 50 | west 50, south 50
shift: beside a fallback                       | east 1, west 1, south 1               | > east > south shift east west 50 | east 50, west 50

port: another one                              | east-port 2, west 1                   | | west 100
port: near ones do not have it                 | east-port 2, north-port 1, west 2     | near | west 100
port: the group does not have it               | east-port 1, west 1, south 1          | east=80 west=20 > south | west 20, south 80
port: one of a cluster has it                  | east-port 1, east 1, west 1           | east=60 west=40 | east 60, west 40
port: another number behind it                 | east-other 1, west 1                  | | east-other 50, west 50
port: another number, by weight                | east-other 2, west 1                  | east=10 west=90 | east-other 10, west 90

dead: one of two here                          | east 1, east-dead 1                   | | east 100 | names east 50, east-dead 50
dead: one of two, another cluster              | east 2, west 1, west-dead 1           | | east 66.7, west 33.3 | names east 50, west 25, west-dead 25
dead: all of another cluster                   | east 2, west-dead 2                   | | east 100 | names east 50, west-dead 50
dead: the near cluster                         | east-dead 1, west 1                   | near | west 100 | names east-dead 100
dead: half of a weighted group                 | east 1, east-dead 1, west 1           | east=80 west=20 | east 80, west 20 | names east 40, east-dead 40, west 20
dead: a weighted group                         | east-dead 1, west 1                   | east=80 west=20 | west 100 | names east-dead 80, west 20
dead: the first of an order                    | east-dead 2, west 1, south 1          | > east > west > south | west 100 | names east-dead 100
dead: one of three groups                      | east 1, west-dead 1, south 1          | east=60 west=20 south=20 | east 75, south 25 | names east 60, west-dead 20, south 20
dead: the old one, a fallback                  | east-dead 1, west 1, south 1          | east=80 west=20 > south | west 20, south 80 | xds west 100 | names east-dead 80, west 20
dead: the new one, a fallback                  | east 1, west-dead 2, south 1          | east=80 west=20 > south | east 80, south 20 | xds east 100 | names east 80, west-dead 20
dead: one of three groups, a fallback          | east 1, west 1, north-dead 1, south 1 | east=50 west=25 north=25 > south | east 50, west 25, south 25 | xds east 66.7, west 33.3 | names east 50, west 25, north-dead 25
dead: all weighted groups, a fallback          | east-dead 1, west-dead 1, south 2     | east=80 west=20 > south | south 100 | names east-dead 80, west-dead 20
dead: half of a weighted group, a fallback     | east 1, east-dead 1, west 1, south 1  | east=80 west=20 > south | east 80, west 20 | names east 40, east-dead 40, west 20
dead: the old one and the fallback             | east-dead 1, west 1, south-dead 1     | east=80 west=20 > south | west 100 | names east-dead 80, west 20
dead: the rest, and a stranger                 | east-dead 1, west 1, north 1          | west=20 | west 20, north 80 | names west 20, east-dead 40, north 40
dead: and others not ready                     | east-dead 1, west-unready 1, south 1  | | south 100 | names east-dead 50, south 50
`;
