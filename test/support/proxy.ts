/** A TCP proxy before a server: it counts round trips, and can lose an answer as a broken network does. */
import { createServer, connect as dial, type Server, type Socket } from "node:net";

export class TcpProxy implements AsyncDisposable {
  /** How often a client spoke after it had been answered, or for the first time. */
  roundTrips = 0;
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  /** Which answer from now on is lost, from 1; 0 for none. */
  #lose = 0;
  #whenLost: () => Promise<void> = async () => {};

  private constructor(target: { host: string; port: number }) {
    this.#server = createServer((client) => this.#serve(client, dial(target.port, target.host)));
  }

  /** @param url where the server is */
  static async before(url: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new TcpProxy({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  /** The URL of the server through this proxy. */
  url(url: string): string {
    const address = this.#server.address();
    const through = new URL(url);
    through.hostname = "127.0.0.1";
    if (typeof address === "object" && address) through.port = String(address.port);
    return through.href;
  }

  /** Ends the connection at the next answer of the server, which reaches nobody. */
  loseNextAnswer(): void {
    this.loseAnswer(1);
  }

  /**
   * Ends the connection at the nth answer of the server from now on, which reaches nobody.
   *
   * @param before what happens before the client hears of it (Default: nothing)
   */
  loseAnswer(n: number, before: () => Promise<void> = async () => {}): void {
    this.#lose = n;
    this.#whenLost = before;
  }

  /** Ends all connections now, on the side of the clients; the server hears nothing of it. */
  cutClients(): void {
    for (const [client] of this.#pairs) client.resetAndDestroy();
  }

  #serve(client: Socket, server: Socket): void {
    const pair: [Socket, Socket] = [client, server];
    this.#pairs.add(pair);
    let answered = true;
    client.on("data", (data) => {
      if (answered) this.roundTrips++;
      answered = false;
      server.write(data);
    });
    server.on("data", (data) => {
      if (!answered && this.#lose > 0 && --this.#lose === 0) {
        server.removeAllListeners("close").destroy();
        void this.#whenLost().then(() => client.resetAndDestroy());
        return;
      }
      answered = true;
      if (!client.destroyed) client.write(data);
    });
    server.on("close", () => client.destroy());
    client.on("end", () => server.end());
    for (const socket of pair) socket.on("error", () => {}).on("close", () => this.#pairs.delete(pair));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
