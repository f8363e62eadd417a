import type { Memory } from "../../../src/stores/threads/memory.js";
import { Ring } from "../../../src/stores/threads/ring.js";

/** A ring that says so before each of its steps, and after each that others can see: the moments at which a thread may be ended or stand still. */
export class SteppedRing extends Ring {
  constructor(
    memory: Memory,
    private readonly step: (name: string) => void,
  ) {
    super(memory);
  }

  override head(): number {
    this.step("head");
    return super.head();
  }

  override headAfterReads(): number {
    this.step("headAfterReads");
    return super.headAfterReads();
  }

  override look(at: number): ReturnType<Ring["look"]> {
    this.step("look");
    return super.look(at);
  }

  override reserve(at: number, length: number): boolean {
    this.step("reserve");
    const isReserved = super.reserve(at, length);
    this.step("reserved");
    return isReserved;
  }

  override begin(at: number): bigint | undefined {
    this.step("begin");
    return super.begin(at);
  }

  override fill(at: number, bytes: Uint8Array): void {
    this.step("fill");
    super.fill(at, bytes);
    this.step("filled");
  }

  override publish(at: number, length: number, before: bigint): boolean {
    this.step("publish");
    const isPublished = super.publish(at, length, before);
    this.step("published");
    return isPublished;
  }

  override abandon(at: number): void {
    this.step("abandon");
    super.abandon(at);
    this.step("abandoned");
  }

  override free(at: number, length: number): void {
    this.step("free");
    super.free(at, length);
  }

  override uint32(from: number): number {
    this.step("uint32");
    return super.uint32(from);
  }

  override float64(from: number): number {
    this.step("float64");
    return super.float64(from);
  }

  override text(...args: Parameters<Ring["text"]>): string {
    this.step("text");
    return super.text(...args);
  }

  override copy(...args: Parameters<Ring["copy"]>): void {
    this.step("copy");
    super.copy(...args);
  }
}
